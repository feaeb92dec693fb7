"""The sections of a page about a server, from a snapshot."""

from collections.abc import Callable, Sequence
from typing import Any

from . import plots
from .page import Column, Command, Finding, Page, Section, Table, duration, number, plural, size
from .plots import Plot
from .server import PRELOAD, Row, Snapshot, no_extension

MOST = 15  # rows of a plot; the table has all


def name_of(row: Row) -> str:
    return f"{row['schemaname']}.{row['indexrelname']}"


def when(x: Any) -> str:
    return f"{x:%Y-%m-%d %H:%M:%S}" if hasattr(x, "strftime") else str(x or "")


def table(caption: str, rows: Sequence[Row], *columns: tuple[str, str, Callable[[Row], str]]) -> Table:
    """columns: title, kind, and what a cell says of a row."""
    return Table(caption, [Column(title, kind) for title, kind, _ in columns],
                 [[str(cell(row) if cell(row) is not None else "") for *_, cell in columns] for row in rows])


def of(key: str, write: Callable[[Any], str] = lambda x: "" if x is None else str(x)) -> Callable[[Row], str]:
    """The cell of a column, empty where this version does not have it."""
    return lambda row: write(row.get(key))


def most(rows: Sequence[Any]) -> str:
    """For descriptions of plots: how many of the rows are drawn."""
    return f"the first {MOST} of {len(rows)}" if len(rows) > MOST else f"all {len(rows)}" if len(rows) > 2 else plural(len(rows), "index", "indexes")


def absent(section: Section, shot: Snapshot, source: str) -> bool:
    """True where the rows are missing; the section then says why."""
    gone = shot.missing(source)
    if gone is None:
        return False
    section.lead = gone.reason
    if gone.command:
        section.commands.append(Command("This helps:", gone.command))
    return True


# ---- sections -----------------------------------------------------------------------

SAVED = [("look-ups", "lookup_ms"), ("joins", "join_ms"), ("ranges", "range_ms"), ("inserts", "insert_ms")]


def advice(shot: Snapshot) -> Section:
    s = Section("advice", "Which btree indexes would gain", "Advice")
    if absent(s, shot, "advice"):
        return s
    rows = shot.get("advice")
    if not rows:
        s.lead = "This database has no btree index of a user's table that the role may see."
        return s
    gain = [r for r in rows if r["verdict"] == "convert"]
    s.lead = (f"{plural(len(gain), 'index', 'indexes')} of {len(rows)} would gain from art. The score is milliseconds of processor time that "
              "art would have saved since the statistics began; a megabyte of WAL counts as one. It is an expectation from tables of "
              "figures: try an index before you convert it.")
    if gain:
        first = gain[:MOST]
        total = sum(float(r["score"] or 0) for r in gain)
        series = [(name, [float(r[key] or 0) for r in first]) for name, key in SAVED]
        series.append(("WAL", [float(r["wal_bytes"] or 0) / 1e6 for r in first]))
        s.plot = Plot("advice", "Expected gain by index",
                      f"The score of {most(gain)} that would gain, by what is saved. The first, {first[0]['indexrelid']}, has "
                      f"{number(first[0]['score'])} of {number(total)}.",
                      plots.bars([r["indexrelid"] for r in first], series, number))
        if first[0].get("command"):
            s.commands = [Command("Try the first one, for ten seconds, as the owner of its table. Nothing is left afterwards.",
                                  f"artidx-report server --trial {shell(first[0]['indexrelid'])} --seconds 10"),
                          Command("Convert it, while others read and write:", first[0]["command"] + ";")]
    s.tables = [table("Every btree index", rows, ("index", "text", of("indexrelid")), ("verdict", "state", of("verdict")),
                      ("score", "num", of("score", number)), ("% of time", "num", of("share", number)), ("art needs", "num", of("art_bytes", size)),
                      ("btree has", "num", of("index_bytes", size)), ("scans", "num", of("scans", number)), ("written", "num", of("written", number)),
                      ("rebuild", "num", of("rebuild_ms", duration)), ("to know", "long", of("reason")), ("command", "code", of("command")))]
    return s


def shell(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def trials(shot: Snapshot) -> Section:
    s = Section("trials", "Trials on your own rows", "Trials")
    if absent(s, shot, "trials"):
        return s
    rows = shot.get("trials")
    if not rows:
        s.lead = ("No trial is kept. A trial builds an art index beside a btree index, asks both the same for some seconds, compares the "
                  "answers, and drops the art index.")
        some = next((r for r in shot.get("advice") if r["verdict"] == "convert"), None)
        index = some["indexrelid"] if some else "INDEX"
        s.commands = [Command("As the owner of the table:", f"artidx-report server --trial {shell(index)} --seconds 10")]
        return s
    last: dict[str, list[Row]] = {}
    for r in rows:  # the newest first, and no more than four indexes
        if len(last) == 4 and r["index_name"] not in last:
            continue
        kept = last.setdefault(r["index_name"], [])
        if not kept or kept[0]["started"] == r["started"]:
            kept.append(r)
    measured = [(index, {"verdict": "all, by its use"}.get(r["measure"], r["measure"]), float(r["gain"])) for index, of_it in last.items() for r in of_it if r["gain"] and r["btree"]]
    verdicts = {index: next((r["remark"] for r in of_it if r["measure"] == "verdict"), "") for index, of_it in last.items()}
    s.lead = f"The last trial of {plural(len(last), 'index', 'indexes')}. Times are processor time of a backend, without waits for disks."
    s.facts = [f"{index}, {when(last[index][0]['started'])}: {verdict}" for index, verdict in verdicts.items() if verdict]
    if measured:
        s.plot = Plot("trials", "How many times as fast, or as small, art is",
                      "By measure of each trial: " + "; ".join(
                          f"{index}: " + ", ".join(f"{m} {plots.times_text(g)}" for i, m, g in measured if i == index) for index in last) + ".",
                      plots.times(measured))
    s.tables = [table("The last trial of each index", [r for of_it in last.values() for r in of_it], ("index", "text", of("index_name")),
                      ("measure", "text", of("measure")), ("unit", "text", of("unit")), ("btree", "num", of("btree", number)),
                      ("art", "num", of("art", number)), ("gain", "num", of("gain", lambda g: plots.times_text(float(g)) if g else "")),
                      ("calls", "num", of("calls", number)), ("remark", "long", of("remark")))]
    return s


PARTS = [("entries and nodes", "live"), ("free in a moment", "retired_bytes"), ("kept for deletion", "reserve_bytes"),
         ("overhead", "overhead_bytes"), ("free", "free_bytes")]
PART_STYLES = [*plots.STYLES[:4], (plots.GRAY, " ")]


def memory(shot: Snapshot) -> Section:
    s = Section("memory", "Memory", "Memory")
    if absent(s, shot, "memory"):
        return s
    rows, usage = shot.get("memory"), shot.get("usage")
    if not rows or rows[0]["area_bytes"] is None:
        s.lead = "There is no memory for art indexes: artidx is not preloaded."
        s.commands = [Command("This helps:", PRELOAD)]
        return s
    m = dict(rows[0])
    m["live"] = m["used_bytes"] - m["retired_bytes"]
    can = m["used_bytes"] + m["free_bytes"]
    s.lead = (f"{size(m['used_bytes'])} of {size(can)} that indexes can have are in use, by {plural(m['indexes'], 'index', 'indexes')} of all databases. "
              f"artidx.memory is {size(m['area_bytes'])}; the kernel has committed {size(m['touched_bytes'])} of it.")
    labels, values = ["the whole area"], [[float(m[key])] for _, key in PARTS]
    for u in usage[: MOST - 1]:
        labels.append(owner(u))
        for i, v in enumerate(values):
            v.append(float(u["bytes"] or 0) if i == 0 else 0.0)
    s.plot = Plot("memory", "Memory by part, database and owner",
                  f"Of {size(m['area_bytes'])}, " + ", ".join(f"{name} {size(m[key])}" for name, key in PARTS)
                  + (". The owner with the most is " + owner(usage[0]) + f", with {size(usage[0]['bytes'])}" if usage else "") + ".",
                  plots.bars(labels, [(name, v) for (name, _), v in zip(PARTS, values)], size, PART_STYLES))
    s.tables = [table("By database and owner", usage, ("database", "text", of("database")), ("owner", "text", of("owner")), ("kind", "text", of("kind")),
                      ("indexes", "num", of("indexes", number)), ("sealed", "num", of("sealed", number)), ("bytes", "num", of("bytes", size)),
                      ("limited by", "text", of("limited_by")), ("limit", "num", of("limit_bytes", size)))]
    s.tables.append(table("Parts of the area", [{"part": n, "bytes": m[k]} for n, k in PARTS], ("part", "text", of("part")), ("bytes", "num", of("bytes", size))))
    return s


def owner(u: Row) -> str:
    return f"{u['database'] or '(none)'}, {u['owner'] or '(none)'}, {u['kind']}"


STATES = ["ready", "building", "sealed", "absent"]


def indexes(shot: Snapshot) -> Section:
    s = Section("indexes", "art indexes by size and state", "Indexes")
    if absent(s, shot, "indexes"):
        if shot.server["extension"] is not None:
            return s
    rows = shot.get("indexes")
    if not rows:
        s.lead = s.lead or "This database has no art index."
        return s
    count = {state: sum(r["state"] == state for r in rows) for state in STATES}
    s.lead = (f"{plural(len(rows), 'index', 'indexes')} with {size(sum(r['bytes'] or 0 for r in rows))}: "
              + ", ".join(f"{n} {state}" for state, n in count.items() if n) + ".")
    first = rows[:MOST]
    s.plot = Plot("indexes", "Memory by index and state",
                  f"The memory of {most(rows)}, with the largest first: {name_of(first[0])} has {size(first[0]['bytes'])}.",
                  plots.bars([name_of(r) + ("" if r["state"] == "ready" else f" ({r['state']})") for r in first],
                             [(state, [float(r["bytes"] or 0) if r["state"] == state else 0 for r in first]) for state in STATES if count[state]],
                             size, [plots.STYLES[STATES.index(state)] for state in STATES if count[state]]))
    s.tables = [table("Every art index", rows, ("index", "text", name_of), ("table", "text", of("relname")), ("state", "state", of("state")),
                      ("reason", "text", of("reason")), ("bytes", "num", of("bytes", size)), ("entries", "num", of("entries", number)),
                      ("an entry", "num", of("bytes_per_entry", lambda b: f"{b:.1f} B" if b else "")), ("scans", "num", of("idx_scan", number)),
                      ("structure", "text", lambda r: f"{r['structure']}, {r['sync']}"), ("owner", "text", of("owner")))]
    return s


MET = [("restarts", "restarts"), ("latch waits", "latch_waits"), ("sleeps", "parks")]


def contention(shot: Snapshot) -> Section:
    s = Section("contention", "How often processes met", "Contention")
    if absent(s, shot, "contention"):
        return s
    rows = sorted(shot.get("contention"), key=lambda r: -sum(r[k] or 0 for _, k in MET))
    busy = [r for r in rows if any(r[k] for _, k in MET)]
    if not busy:
        s.lead = "No process has met another in an art index of this database." if rows else "This database has no art index."
        return s
    s.lead = ("A restart is an operation that found that what it had read was changed, and started over: a few in a thousand are nothing. A latch wait "
              "takes some microseconds. Many sleeps mean that several processes write to the same place all the time.")
    first = busy[:8]
    s.plot = Plot("contention", "Restarts, latch waits and sleeps by index",
                  f"Of {plural(len(busy), 'index', 'indexes')} in which processes met, {'the first 8' if len(busy) > 8 else 'all'}. {name_of(first[0])} has "
                  + ", ".join(f"{number(first[0][k])} {n}" for n, k in MET) + ".",
                  plots.panels([name_of(r) for r in first], [(n, [float(r[k] or 0) for r in first]) for n, k in MET], number))
    s.tables = [table("Since the server's start or artidx_reset_stats", rows, ("index", "text", name_of),
                      *((n, "num", of(k, number)) for n, k in MET), ("pessimistic", "num", of("pessimistic", number)), ("tail buffer", "text", of("tail_mode")),
                      ("tail inserts", "num", of("tail_inserts", number)), ("since", "text", of("stats_reset", when)))]
    return s


CAUSES = ["conflict", "lock_busy", "capacity", "explicit", "zero"]


def elision(shot: Snapshot) -> Section:
    s = Section("elision", "Aborts of elision", "Elision")
    if absent(s, shot, "aborts"):
        return s
    hardware = (shot.get("hardware") or [{}])[0]
    if hardware:
        s.facts = [f"Elision is {hardware['elision']}" + (f": {hardware['reason']}" if hardware.get("reason") else "") + ".",
                   f"Processor: {hardware.get('simd') or 'no SIMD'}, {plural(hardware.get('cpus') or 0, 'processor')}."]
    rows = shot.get("aborts")
    tried = [r for r in rows if r["attempts"]]
    if not tried:
        s.lead = "No section of an index was tried as a transaction of the processor, so nothing was aborted."
    else:
        first = sorted(tried, key=lambda r: -(r["attempts"] - r["commits"]))[:MOST]
        tries, done = (sum(r[k] for r in tried) for k in ("attempts", "commits"))
        s.lead = f"{number(tries)} transactions were begun, and {100 * done / tries:.0f} % of them committed."
        s.plot = Plot("aborts", "Aborts by index, site and cause", f"The aborts of {most(tried)}, by cause.",
                      plots.bars([f"{r['indexrelname']}, {r['site']}" for r in first],
                                 [(c.replace("_", " "), [float(r[c]) for r in first]) for c in CAUSES], number))
    if rows:
        s.tables = [table("By index and site", rows, ("index", "text", name_of), ("site", "text", of("site")), ("mode", "text", of("mode")),
                          ("sections", "num", of("sections", number)), ("fallbacks", "num", of("fallbacks", number)), ("tries", "num", of("attempts", number)),
                          ("commits", "num", of("commits", number)), *((c.replace("_", " "), "num", of(c, number)) for c in CAUSES))]
    return s


def progress_of(r: Row) -> str:
    done, total = (r["tuples_done"], r["tuples_total"]) if r["tuples_total"] else (r["blocks_done"], r["blocks_total"])
    return f"{100 * (done or 0) / total:.0f} %" if total else ""


def builds(shot: Snapshot) -> Section:
    s = Section("builds", "Builds", "Builds")
    gone = shot.missing("progress")
    rows = shot.get("progress")
    s.lead = gone.reason if gone else f"{plural(len(rows), 'index', 'indexes')} of any database being built or loaded now." if rows else "Nothing is being built or loaded now."
    if gone and gone.command:
        s.commands = [Command("This helps:", gone.command)]
    if rows:
        s.tables.append(table("Now", rows, ("index", "text", lambda r: r["index_name"] if r["here"] else f"{r['datname']}: {r['index_relid']}"),
                              ("command", "text", of("command")), ("phase", "text", of("phase")), ("done", "num", progress_of), ("helpers", "num", of("helpers", number))))
    built = sorted((r for r in shot.get("indexes") if r.get("last_build_ms") is not None), key=lambda r: -r["last_build_ms"])
    if built:
        first = built[:MOST]
        s.plot = Plot("builds", "How long the last build of each index took",
                      f"The time of {most(built)}, with the longest first: {name_of(first[0])} took {duration(first[0]['last_build_ms'])} ({first[0]['last_build_source']}).",
                      plots.bars([name_of(r) for r in first], [("build", [float(r["last_build_ms"]) for r in first])], duration))
        s.tables.append(table("The last build of each index", built, ("index", "text", name_of), ("when", "text", of("last_build", when)), ("by", "text", of("last_build_source")),
                              ("took", "num", of("last_build_ms", duration)), ("builds", "num", of("builds", number)), ("seals", "num", of("seals", number)),
                              ("next try", "text", of("next_try", when))))
    return s


def crashes(shot: Snapshot) -> Section:
    s = Section("crashes", "Checks after a crash", "Crashes")
    if absent(s, shot, "crash_checks"):
        return s
    c = (shot.get("crash_checks") or [{"waiting": 0, "sound": 0, "different": 0}])[0]
    if not any(c.values()):
        s.lead = "No index has outlived a crash since the server's start, so there was nothing to check."
    else:
        s.lead = "Indexes that outlived a crash of a process are compared with their tables. One that differs is built again, and the log names it."
        s.tables = [table("Since the server's start", [c], ("still to check", "num", of("waiting", number)), ("sound", "num", of("sound", number)), ("different", "num", of("different", number)))]
    return s


def replicas(shot: Snapshot) -> Section:
    s = Section("replicas", "Standbys", "Standbys")
    if shot.server["standby"]:
        if absent(s, shot, "standby"):
            return s
        rows = shot.get("standby")
        s.lead = "This server is a standby. " + ("A follower keeps the indexes of each database by the WAL of the tables." if rows else
                                                 "No follower runs: no database has an art index, or artidx.build_workers is 0.")
        if rows:
            s.tables = [table("Followers", rows, ("database", "text", of("database")), ("behind, ms", "num", of("lag_ms", number)), ("behind", "num", of("lag_bytes", size)),
                              ("entries added", "num", of("entries_added", number)), ("swept", "num", of("entries_swept", number)), ("dead rows waiting", "num", of("dead_waiting", number)),
                              ("waits of scans", "num", of("waits", number)), ("given up", "num", of("given_up", number)))]
        return s
    if absent(s, shot, "senders"):
        return s
    rows = shot.get("senders")
    if not rows and not shot.server["monitor"]:
        s.lead = "This server is a primary. Only a role with pg_monitor sees whether standbys are connected."
        return s
    s.lead = "This server is a primary. " + ("Ask each standby for a report of its own: it has its own memory, and followers that can lag." if rows else "No standby is connected.")
    if rows:
        s.tables = [table("Standbys that are connected", rows, ("name", "text", of("application_name")), ("state", "text", of("state")), ("synchronous", "text", of("sync_state")),
                          ("behind", "num", of("behind", size)), ("replay lag", "text", of("replay_lag")))]
    return s


def settings(shot: Snapshot) -> Section | None:
    rows = shot.get("settings")
    if not rows:
        return None
    return Section("settings", "Settings", "Settings", lead="What artidx goes by on this server.", tables=[
        table("Values now", rows, ("name", "text", of("name")), ("value", "text", lambda r: f"{r['setting']} {r['unit'] or ''}".strip()), ("what it does", "long", of("short_desc")))])


def btree(shot: Snapshot) -> Section | None:
    """Of a database without the extension: what there is to gain from."""
    rows = shot.get("btree")
    if not rows:
        return None
    s = Section("btree", "btree indexes by size", "btree indexes", lead="Without the extension there is no advice. These are the indexes that it would look at.")
    first = rows[:MOST]
    s.plot = Plot("btree", "Size by index", f"The size of {most(rows)}, with the largest first: {name_of(first[0])} has {size(first[0]['bytes'])}.",
                  plots.bars([name_of(r) for r in first], [("size", [float(r["bytes"]) for r in first])], size))
    s.tables = [table("btree indexes", rows, ("index", "text", name_of), ("table", "text", of("relname")), ("bytes", "num", of("bytes", size)), ("scans", "num", of("idx_scan", number)))]
    return s


# ---- the page -----------------------------------------------------------------------


def findings(shot: Snapshot) -> list[Finding]:
    out = []
    server = shot.server
    if not server["monitor"] and any(g and "pg_monitor" in g.command for g in map(shot.missing, shot.rows)):
        out.append(Finding("act", f"The role {server['role']} may not read all views. A superuser can grant it pg_monitor."))
    if server["memory_setting"] is None and server["extension"]:
        out.append(Finding("act", "artidx is not preloaded: no art index can be used. Put artidx into shared_preload_libraries, and restart the server.", "memory"))
    if server["extension"] and server["available"] and server["extension"] != server["available"]:
        out.append(Finding("act", f"The database has version {server['extension']} of the extension, and the server has {server['available']}: ALTER EXTENSION artidx UPDATE."))
    for r in [r for r in shot.get("indexes") if r["state"] in ("sealed", "absent")][:5]:
        out.append(Finding("act", f"{name_of(r)} is not in memory: {r['reason'] or r['state']}. Queries do without it.", "indexes"))
    for c in shot.get("crash_checks"):
        if c["different"]:
            out.append(Finding("act", f"{plural(c['different'], 'check')} after a crash found an index that differs from its table. Restart the server soon, and look for the process that crashed.", "crashes"))
    for m in shot.get("memory"):
        can = (m["used_bytes"] or 0) + (m["free_bytes"] or 0)
        if can and m["used_bytes"] > 0.9 * can:
            out.append(Finding("act", f"{100 * m['used_bytes'] / can:.0f} % of the memory is in use. Increase artidx.memory, or drop an index.", "memory"))
        if m["sealed"]:
            out.append(Finding("act", f"{plural(m['sealed'], 'index', 'indexes')} of all databases are out of memory for want of it.", "memory"))
    for r in shot.get("standby"):
        if (r["lag_ms"] or 0) > 1000:
            out.append(Finding("act", f"The follower of {r['database']} is {duration(r['lag_ms'])} behind replay.", "replicas"))
    if any(r["state"] == "building" for r in shot.get("indexes")):
        out.append(Finding("note", f"{plural(sum(r['state'] == 'building' for r in shot.get('indexes')), 'index', 'indexes')} being built.", "builds"))
    gain = [r for r in shot.get("advice") if r["verdict"] == "convert"]
    if gain:
        need, free = sum(r["art_bytes"] or 0 for r in gain), sum(m["free_bytes"] or 0 for m in shot.get("memory"))
        room = f" {'It needs' if len(gain) == 1 else 'Together they need'} {size(need)}" + (f"; {size(free)} are free." if shot.get("memory") else ".")
        out.append(Finding("note", f"{plural(len(gain), 'btree index', 'btree indexes')} would gain from art, first of all {gain[0]['indexrelid']}.{room}", "advice"))
    if not any(f.level == "act" for f in out) and server["extension"] and shot.get("memory"):
        ready = shot.get("indexes")
        out.insert(0, Finding("good", f"All art indexes of this database ({len(ready)}) are in memory." if ready and all(r["state"] == "ready" for r in ready)
                              else "Nothing needs action."))
    return out


def tiles(shot: Snapshot) -> list[tuple[str, str, str]]:
    out = []
    rows, m, advice_rows = shot.get("indexes"), (shot.get("memory") or [None])[0], shot.get("advice")
    if isinstance(shot.rows.get("indexes"), list):
        out.append(("art indexes ready", f"{sum(r['state'] == 'ready' for r in rows)} of {len(rows)}", "in this database"))
    if m and m["area_bytes"] is not None:
        can = m["used_bytes"] + m["free_bytes"]
        out.append(("memory in use", f"{100 * m['used_bytes'] / can:.0f} %" if can else "", f"{size(m['used_bytes'])} of {size(can)}"))
    if isinstance(shot.rows.get("advice"), list):
        gain = [r for r in advice_rows if r["verdict"] == "convert"]
        out.append(("would gain", str(len(gain)), f"of {plural(len(advice_rows), 'btree index', 'btree indexes')}"))
    if isinstance(shot.rows.get("progress"), list):
        out.append(("builds now", str(len(shot.get("progress"))), "in all databases"))
    return out


CHAPTERS = [("advice.md", "what the columns of the advice and of a trial mean, and where their numbers come from"), ("figures.md", "the benches, with every value"),
            ("views.md", "the views that this page reads"), ("monitoring.md", "what to do about each finding: runbooks"), ("memory.md", "how much memory, and what happens when it is full"),
            ("way-out.md", "back to btree, by one command")]


def page(shot: Snapshot, docs: str = "") -> Page:
    server = shot.server
    if server["extension"] is None:
        why, commands = no_extension(server)
        first = Section("extension", "The extension is not here", "Extension", lead=why, commands=[Command("As a superuser:", "\n".join(commands))])
        sections = [first, btree(shot), settings(shot)]
    else:
        sections = [advice(shot), trials(shot), memory(shot), indexes(shot), contention(shot), elision(shot), builds(shot), crashes(shot),
                    replicas(shot), settings(shot)]
    version = f"artidx {server['extension']}" if server["extension"] else "without artidx"
    links = [(f"{chapter}: {what}", f"{docs.rstrip('/')}/{chapter}" if docs else "") for chapter, what in CHAPTERS]
    return Page(f"artidx: {server['database']}",
                f"{when(server['taken'])}, as {server['role']}; PostgreSQL {server['version'].split(' ')[0]}, {version}, "
                f"{'a standby' if server['standby'] else 'a primary'}, up since {when(server['started'])}",
                [s for s in sections if s], findings(shot), tiles(shot), links,
                f"Made by artidx-report {server['report']}. The chapters are in the documents of artidx, below doc.")
