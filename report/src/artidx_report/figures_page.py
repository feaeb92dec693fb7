"""The results of the benches, as plots and as sections of a page."""

from collections.abc import Iterator
from math import exp, log
from pathlib import Path
from statistics import median

from . import plots
from .page import Column, Section, Table, number
from .plots import Plot
from .results import Results, measures, medians, read_all


def _ratio(values: dict, key: tuple, am: str, base: str) -> float | None:
    a, b = values.get((*key, am)), values.get((*key, base))
    return b / a if a and b else None


AMS = {"none": "no index", "empty": "floor", "btree": "btree", "btree18": "btree 18", "hash": "hash", "art": "art"}


def bench(results: Results) -> Iterator[tuple[Plot, Table]]:
    values = medians(results, ["measure", "am"], "value")
    # the floor and btree of 18 only where they were measured
    columns = [am for am in AMS if am not in ("empty", "btree18") or any(key[1] == am for key in values)]
    units = {row["measure"]: row["unit"] for row in results.rows}
    rows, cells = [], []
    for m in measures():
        art, btree = values.get((m.name, "art")), values.get((m.beside or m.name, "btree"))
        if art is None and btree is None:
            continue
        if art and btree:
            rows.append((m.group, m.title, btree / art))
        cells.append([m.title, units[m.name],
                      *(number(btree if am == "btree" else values.get((m.name, am))) for am in columns),
                      plots.times_text(btree / art) if art and btree else ""])
    if not rows:
        return
    better = sum(1 for *_, r in rows if r >= 1)
    middle = median(r for *_, r in rows)
    yield (
        Plot(results.name, "One process: how many times less time, memory or WAL art takes than btree",
             f"{len(rows)} measures. art is better in {better}, by {plots.times_text(middle)} in the median; "
             f"the most is {plots.times_text(max(r for *_, r in rows))}, the least {plots.times_text(min(r for *_, r in rows))}.",
             plots.times(rows), results.run + "; medians"),
        Table("Medians of all repetitions", [Column("measure"), Column("unit"), *(Column(c, "num") for c in
              (*(AMS[am] for am in columns), "better"))], cells),
    )


WORKLOADS = {"tail": "inserts at the tail", "hot": "updates of a hot range", "uniform": "uniform, 50 % reads"}


def _case(workload: str, rows: str) -> str:
    title = WORKLOADS.get(workload) or (f"skewed, {workload[4:]} % reads" if workload.startswith("skew") else workload)
    return f"{title}, {rows} row{'' if rows == '1' else 's'}"


def contention(results: Results) -> Iterator[tuple[Plot, Table]]:
    cells = Results(results.path, results.kind, "", results.head, [r for r in results.rows if r["part"] == "cells"])
    keys = ["workload", "rows", "clients", "engine"]
    tps, p99 = medians(cells, keys, "tps"), medians(cells, keys, "p99_us")
    cases = list(dict.fromkeys(k[:2] for k in tps))
    clients = sorted({k[2] for k in tps}, key=int)
    engines = sorted({k[3] for k in tps} - {"nbtree"}, key=_rank)
    if not cases or not any(k[3] == "nbtree" for k in tps):
        return
    panels, rows = [], []
    ratios: dict[str, list[float]] = {e: [] for e in engines}
    for case in cases:
        for values, what in ((tps, "throughput"), (p99, "p99 latency")):
            lines = []
            for e in engines:
                found = [values.get((*case, c, e), 0) / values[*case, c, "nbtree"] if values.get((*case, c, "nbtree")) else 0
                         for c in clients]
                if any(found):
                    lines.append((e, found))
                if values is tps:
                    ratios[e] += [f for f in found if f]
            if lines:
                panels.append((f"{_case(*case)}: {what}", lines))
        for c in clients:
            for e in ("nbtree", *engines):
                key = (*case, c, e)
                if key in tps:
                    rows.append([_case(*case), c, e, number(tps[key]), number(p99.get(key)),
                                 plots.times_text(tps[key] / tps[*case, c, "nbtree"]) if (*case, c, "nbtree") in tps else ""])
    means = {e: exp(sum(map(log, r)) / len(r)) for e, r in ratios.items() if r}
    best = max(means, key=means.get)
    yield (
        Plot(results.name, "Many clients: throughput and 99th percentile, in multiples of nbtree's",
             f"For {len(cases)} kinds of statements, a row for each structure with its way of synchronizing, and a mark for each number "
             f"of clients. More throughput is better, less latency is better. By the geometric mean of its throughput {best} is "
             f"first, with {plots.times_text(means[best])} of nbtree's.",
             plots.dots(panels, [f"{c} client{'' if c == '1' else 's'}" for c in clients], 2), results.run),
        Table("Every cell", [Column("statements"), Column("clients", "num"), Column("engine"), Column("statements/s", "num"),
                             Column("p99, µs", "num"), Column("× nbtree", "num")], rows),
    )


def _rank(engine: str) -> tuple[int, str]:
    return next((i for i, p in enumerate(("none", "empty", "nbtree", "art", "btree")) if engine.startswith(p)), 9), engine


def rises(results: Results) -> Iterator[tuple[Plot, Table]]:
    part = Results(results.path, results.kind, "", results.head, [r for r in results.rows if r["part"] == "rises"])
    keys = ["workload", "rows", "engine"]
    tps, p99 = medians(part, keys, "tps"), medians(part, keys, "p99_us")
    rows, cells = [], []
    for w, n in dict.fromkeys(k[:2] for k in tps):
        case = f"{'one index' if w == 'rise1' else 'four indexes'}, {n} row{'' if n == '1' else 's'} a statement"
        base = tps.get((w, n, "nbtree"))
        for e in sorted((k[2] for k in tps if k[:2] == (w, n)), key=_rank):
            name = AMS[e] if e in ("none", "empty") else e.replace("-off", ", no tail buffer")
            ratio = tps[w, n, e] / base if base else None
            cells.append([case, name, number(tps[w, n, e]), number(p99[w, n, e] / 1000), plots.times_text(ratio) if ratio else ""])
            if ratio and e != "nbtree":
                rows.append((case, name, ratio))
    if rows:
        yield (
            Plot("rises", "Inserts of rising keys by 64 clients: statements a second, in multiples of nbtree's",
                 f"{len(rows)} bars in {len({g for g, *_ in rows})} groups. No index is the most that can be had.",
                 plots.times(rows, "more than nbtree", "less"), results.run),
            Table("Medians", [Column("INSERT"), Column("index"), Column("statements/s", "num"), Column("p99, ms", "num"),
                              Column("× nbtree", "num")], cells),
        )


def sysbench(results: Results) -> Iterator[tuple[Plot, Table]]:
    names = list(dict.fromkeys(r["workload"] for r in results.rows))
    refused = {r["workload"] for r in results.rows if r.get("refused")}
    of = {c: medians(results, ["workload", "am"], c) for c in ("tps", "p99_ms", "wal_bytes")}
    rows, cells = [], []
    for name in names:
        pair = [[of[c].get((name, am)) for am in ("btree", "art")] for c in of]
        ratio = pair[0][1] / pair[0][0] if all(pair[0]) and name not in refused else None
        if ratio:
            rows.append(("", name, ratio))
        cells.append([name, *(number(v) for p in pair for v in p), plots.times_text(ratio) if ratio else "refused"])
    if rows:
        mean = exp(sum(log(r) for *_, r in rows) / len(rows))
        yield (
            Plot(results.name, "sysbench with every index art: transactions a second, in multiples of btree's",
                 f"{len(rows)} workloads, whose geometric mean is {plots.times_text(mean)}.", plots.times(rows), results.run),
            Table("Medians", [Column("workload"), *(Column(f"{am} {c}", "num") for c in ("/s", "p99, ms", "WAL, bytes")
                              for am in ("btree", "art")), Column("better", "num")], cells),
        )


DEMO = {
    "insert": ("inserts, rows a second", True), "lookup": ("look-ups by pgbench, a second", True),
    "join": ("look-ups in one join, rows a second", True), "range": ("scans of 1,000 keys, a second", True),
    "wal": ("WAL, bytes a row inserted", False), "walcp": ("the same after a checkpoint", False),
    "size": ("index, bytes a row", False), "build": ("CREATE INDEX, s", False),
}


def demo(results: Results) -> Iterator[tuple[Plot, Table]]:
    values = medians(results, ["kind", "measure", "am"], "value")
    rows, cells = [], []
    for kind, name in (("uuid", "random uuid"), ("serial", "bigserial")):
        for measure, (title, more) in DEMO.items():
            b, a = (values.get((kind, measure, am)) for am in ("btree", "art"))
            if a and b:
                rows.append((name, title, a / b if more else b / a))
                cells.append([name, title, number(b), number(a), plots.times_text(rows[-1][2])])
    if rows:
        yield (
            Plot(results.name, "A first look: how many times more work a second, or how many times less of it, art has",
                 f"{len(rows)} measures, of which art is better in {sum(r >= 1 for *_, r in rows)}.", plots.times(rows), results.run),
            Table("Values", [Column("keys"), Column("measure"), Column("btree", "num"), Column("art", "num"), Column("better", "num")], cells),
        )


def outage(results: Results) -> Iterator[tuple[Plot, Table]]:
    runs: dict[str, list[tuple[float, float]]] = {}
    for row in results.rows:
        runs.setdefault(row["run"], []).append((float(row["time"]), float(row["lookups"]) * 10))
    cells = []
    for run, points in runs.items():
        before = [v for t, v in points if -3 <= t < 0]
        back = next((t for t, v in points if t > 0.2 and v > 0), None)
        cells.append([run, number(sum(before) / len(before) if before else None), "" if back is None else f"{back:.1f}"])
    yield (
        Plot(results.name, "Look-ups a second, in tenths of a second; a backend is killed at 0 s",
             f"{len(runs)} runs: {', '.join(runs)}.", plots.lines(list(runs.items()), [0, 10, 100, 1000, 10000, 100000], "seconds")),
        Table("Runs", [Column("run"), Column("look-ups/s before", "num"), Column("first after, s", "num")], cells),
    )


def lag(results: Results) -> Iterator[tuple[Plot, Table]]:
    slots: dict[float, float] = {}
    for row in results.rows:
        if row["am"] == "art":
            at = int(float(row["time"]) * 20) / 20
            slots[at] = max(slots.get(at, 0), float(row["lag_ms"]))
    if not slots:
        return
    values = sorted(float(r["lag_ms"]) for r in results.rows if r["am"] == "art")
    cells = [[name, number(values[int(share * (len(values) - 1))])] for name, share in
             (("median", 0.5), ("99th percentile", 0.99), ("longest", 1))]
    yield (
        Plot(results.name, "How many milliseconds a standby's follower was behind replay",
             f"The median is {cells[0][1]} ms, the longest {cells[2][1]} ms; each point is the longest of 50 ms.",
             plots.lines([("follower", sorted(slots.items()))], [0, 1, 5, 20, 100, 500, 2000, 10000], "seconds of the load", 20)),
        Table("Lag", [Column(""), Column("ms", "num")], cells),
    )


DRAW = {"bench": [bench], "contention": [contention, rises], "sysbench": [sysbench], "demo": [demo], "outage": [outage], "lag": [lag]}
TITLES = {"bench": "One process", "contention": "Many clients", "sysbench": "A whole application", "demo": "A first look",
          "outage": "After a crash", "lag": "A standby"}


def drawings(folder: Path) -> Iterator[tuple[Results, Plot, Table]]:
    for results in read_all(folder):
        for draw in DRAW[results.kind]:
            for plot, table in draw(results):
                yield results, plot, table


def stamp(results: Results) -> str:
    """What test/bench/figures.pl compares with the results."""
    import matplotlib

    from . import __version__

    return f"{results.path.name} sha256 {results.digest}; artidx-report {__version__}, matplotlib {matplotlib.__version__}"


def sections(folder: Path) -> list[Section]:
    out: list[Section] = []
    for results, plot, table in drawings(folder):
        head = results.head
        lead = [f"{head.get('command', results.path.name)}: {results.run}", " on ".join(head[k] for k in ("server", "machine") if head.get(k)),
                head.get("conditions", ""), f"Not quiet: the load was {head['load']} when it began." if float(head.get("load") or 0) >= 1 else ""]
        out.append(Section(plot.name, plot.title, nav=TITLES[results.kind] if plot.name != "rises" else "Rising keys",
                           plot=plot, tables=[table], facts=[fact for fact in lead if fact]))
    return out
