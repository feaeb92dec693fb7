"""What the benches wrote: files of values, with a head of lines "# key: value"."""

import csv
import re
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from statistics import median

from . import ReportError

# the columns that tell the benches apart
KINDS = {
    "bench": ["measure", "am", "rep", "value", "unit"],
    "contention": ["part", "workload", "rows", "clients", "engine", "tps"],
    "sysbench": ["workload", "am", "rep", "tps", "p99_ms", "wal_bytes"],
    "demo": ["kind", "measure", "am", "value"],
    "outage": ["run", "time", "lookups", "inserts"],
    "lag": ["am", "time", "lag_ms", "lag_bytes", "replay_bytes"],
}


@dataclass
class Results:
    path: Path
    kind: str
    digest: str
    head: dict[str, str] = field(default_factory=dict)
    rows: list[dict[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def run(self) -> str:
        """The run in a line: when, and at which scale."""
        scale = re.sub(r"\d{5,}", lambda m: f"{int(m.group()):,}", self.head.get("scale", ""))
        return ", ".join(s for s in (self.head.get("date", ""), scale) if s)


def read(path: Path) -> Results | None:
    """The results in a file, or None where it has the columns of no bench."""
    try:
        raw = path.read_bytes()
        text = raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(5, f"{path} cannot be read: {error}") from error
    lines = text.splitlines()
    head = dict(m.groups() for m in (re.match(r"# (\w+): (.*)", line) for line in lines) if m)
    body = [line for line in lines if not line.startswith("#")]
    if not body:
        return None
    between = "," if path.suffix == ".csv" else "\t"
    names = body[0].split(between)
    kind = next((kind for kind, columns in KINDS.items() if names[: len(columns)] == columns), None)
    if kind is None:
        return None
    results = Results(path, kind, sha256(raw).hexdigest(), head)
    for number, values in enumerate(csv.reader(body[1:], delimiter=between), 2):
        if len(values) > len(names) or len(values) < len(KINDS[kind]):
            raise ReportError(5, f"{path}: row {number} has {len(values)} values for {len(names)} columns.")
        results.rows.append(dict(zip(names, values)))
    return results


def read_all(folder: Path) -> list[Results]:
    """Every file of a folder that a bench wrote: the whole table first, then runs of parts."""
    if not folder.is_dir():
        raise ReportError(5, f"{folder} is no folder.", "Give the folder of a bench's results, for instance doc/figures.")
    order = list(KINDS)
    found = [r for path in sorted(folder.iterdir()) if path.suffix in (".tsv", ".csv") and path.is_file()
             for r in [read(path)] if r and r.rows]
    if not found:
        raise ReportError(5, f"{folder} has no results of a bench.",
                          "make bench, make contention, make sysbench, make demo, make outage and make replica write some.")
    return sorted(found, key=lambda r: (order.index(r.kind), len(r.name), r.name))


def medians(results: Results, keys: list[str], value: str) -> dict[tuple[str, ...], float]:
    """The medians of a column, by the values of keys, in the order of the file."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in results.rows:
        try:
            number = float(row[value])
        except (KeyError, ValueError):
            continue
        groups.setdefault(tuple(row[k] for k in keys), []).append(number)
    return {key: median(values) for key, values in groups.items()}


@dataclass
class Measure:
    """A line of goals.tsv, which test/bench/figures.pl reads, too."""

    group: str
    name: str
    title: str
    beside: str  # the measure whose btree this one is compared with, or ""


def measures() -> list[Measure]:
    lines = files("artidx_report").joinpath("goals.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [Measure(group, name, title, goal[0].split()[1] if kind == "beside" else "")
            for group, name, title, kind, *goal in rows]
