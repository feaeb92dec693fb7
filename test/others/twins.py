"""Random statements to two databases that are the same but for their indexes.

sqlsmith --dry-run makes the statements; it sends none.  Each runs in a transaction that is
rolled back:
 - on two databases with btree, of which one may use no index and sorts where the other one
   hashes.  Where these differ, or one takes too long, the statement has no one answer, and is
   not compared;
 - twice on the database with art: as the planner likes it, and with sequential scans, hash
   joins and merge joins discouraged.
The answers are compared as sets of rows with their numbers, the errors by SQLSTATE.  Where art
differs, the database with btree is asked again under more settings; if any of these answers
otherwise than the first, the statement has no one answer either.  Nor has it one if the database
with art gives the same answer without the art indexes: rows that were rolled back have changed the
order of another index there, of which a LIMIT takes some.  Where art takes longer than
the limit, btree is asked under the same settings.  If it is quick, art has SLOWER times the
limit, and to take longer than that is a difference.  A statement that btree refuses because its
key is too long is not compared, if art has the key.
"""
import argparse
import collections
import os
import re
import signal
import subprocess
import sys
import time

from psycopg import pq

LIMIT_MS = 300
SLOWER = 30
# What outlives a rollback, ends or stops sessions, or asks how an index is stored.  All else that
# is not the same each time shows itself between the two databases with btree.
NOT_ASKED = re.compile(
    r"\b(pg_(sleep\w*|terminate\w*|cancel\w*|reload_conf|rotate\w*|promote|\w*advisory\w*|switch_wal|create_\w+|drop_\w+"
    r"|wal_\w+|logical\w*|replication\w*|copy_\w+|backup\w*|export_snapshot|log_\w+|ls_\w+|read_\w+|import\w*|notify"
    r"|stat_\w+|\w*size\w*|relation_file\w*|filenode\w*|index\w*|get_indexdef)|nextval|setval|lo_\w+|lo(creat|unlink)\w*"
    r"|brin_(summarize|desummarize)\w*|gin_clean\w*|binary_upgrade\w*|wait_pid"
    # a view of a sample without a seed
    r"|test_tablesample_v2)\b", re.I)
# with a seed, since tables with the same files give the same samples
SAMPLE = re.compile(r"(tablesample \w+ \([\d.]+\))", re.I)
PLAIN = [
    "",
    "enable_indexscan=off enable_indexonlyscan=off enable_bitmapscan=off enable_hashjoin=off enable_hashagg=off "
    "enable_memoize=off enable_material=off",
]
ART = ["", "enable_seqscan=off enable_hashjoin=off enable_mergejoin=off"]
MORE = [
    "enable_seqscan=off enable_hashjoin=off enable_mergejoin=off",
    "enable_nestloop=off enable_mergejoin=off",
    "enable_nestloop=off enable_hashjoin=off",
    "enable_sort=off enable_incremental_sort=off",
    "enable_hashagg=off enable_material=off from_collapse_limit=1 join_collapse_limit=1",
    "enable_seqscan=off enable_bitmapscan=off enable_hashagg=off",
    "enable_indexscan=off enable_indexonlyscan=off",
]
# in a transaction of the superuser: the planner sees no art index
WITHOUT_ART = b"""UPDATE pg_index SET indisvalid = false FROM pg_class c JOIN pg_am a ON a.oid = relam
    WHERE c.oid = indexrelid AND amname = 'art'; SET LOCAL ROLE smith"""


class Session:
    """One session of a database under some settings; made anew when it has ended."""

    def __init__(self, database, settings, limit_ms=LIMIT_MS, user="smith", first=None):
        self.limit_ms = limit_ms
        self.info = f"dbname={database} user={user}"
        self.settings = settings
        self.first = first
        self.connect()

    def connect(self):
        # the server may be in a crash's recovery
        for _ in range(60):
            self.pg = pq.PGconn.connect(self.info.encode())
            if self.pg.status == pq.ConnStatus.OK:
                break
            time.sleep(1)
        else:
            sys.exit(f"no connection: {self.pg.error_message.decode()}")
        for line in ["extra_float_digits=0"] + self.settings.split() + [f"statement_timeout={self.limit_ms}"]:
            self.pg.exec_(f"SET {line.replace('=', ' = ')}".encode())

    def ask(self, statement):
        """(SQLSTATE, rows as a multiset, rows affected)"""
        # the limit may end these, too
        while self.pg.status == pq.ConnStatus.OK and self.pg.transaction_status != pq.TransactionStatus.INTRANS:
            self.pg.exec_(b"BEGIN")
        if self.first:
            self.pg.exec_(self.first)
        got = self.pg.exec_(statement)
        state = (got.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        rows = collections.Counter()
        for r in range(got.ntuples):
            rows[tuple(got.get_value(r, c) for c in range(got.nfields))] += 1
        tag = (got.command_status or b"").decode()
        if self.pg.status != pq.ConnStatus.OK:
            # the server says of a session that ended when the connection did
            self.pg.finish()
            self.connect()
            return ("LOST", rows, tag)
        while self.pg.status == pq.ConnStatus.OK and self.pg.transaction_status != pq.TransactionStatus.IDLE:
            self.pg.exec_(b"ROLLBACK")
        return (state, rows, tag)


def statements(smith, seed):
    """Statements of sqlsmith, for ever."""
    while True:
        with subprocess.Popen(
                [smith, "--dry-run", "--exclude-catalog", f"--seed={seed}", "--max-queries=20000",
                 "--target=dbname=regression user=smith"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace") as source:
            text = ""
            for line in source.stdout:
                text += line
                if text.rstrip().endswith(";"):
                    yield SAMPLE.sub(r"\1 repeatable (1)", text.strip().rstrip(";"))
                    text = ""
        seed += 1


def shown(answer):
    state, rows, tag = answer
    some = "\n".join(f"{n} x {row}" for row, n in sorted(rows.items(), key=str)[:20])
    return f"{state or tag}, {sum(rows.values())} rows\n{some}"


def main():
    args = argparse.ArgumentParser()
    for name in ("smith", "plain", "art"):
        args.add_argument("--" + name, required=True)
    args.add_argument("--minutes", type=float, required=True)
    args.add_argument("--seed", type=int, required=True)
    args = args.parse_args()
    print(f"# sqlsmith: seed {args.seed}", flush=True)

    plain = [Session(d, s) for d, s in zip(("smith_plain", "smith_other"), PLAIN)]
    art = [Session("smith_art", s) for s in ART]
    more = [Session("smith_plain", s) for s in MORE]
    same = [Session("smith_plain", s) for s in ART]
    patient = [Session("smith_art", s, SLOWER * LIMIT_MS) for s in ART]
    without = [Session("smith_art", s, SLOWER * LIMIT_MS, os.environ["PGUSER"], WITHOUT_ART) for s in ART]
    count = collections.Counter()
    files = [open(os.path.join(d, "results/statements.out"), "w") for d in (args.plain, args.art)]
    outcomes = [open(os.path.join(d, "outcomes"), "w") for d in (args.plain, args.art)]
    end = time.time() + 60 * args.minutes
    told = time.time()
    # whoever ends it early gets what there is until then
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    for statement in statements(args.smith, args.seed):
        if stop or time.time() > end:
            break
        if time.time() > told + 60:
            told += 60
            print("#", dict(count), flush=True)
        count["statements"] += 1
        if NOT_ASKED.search(statement):
            count["not asked"] += 1
            continue
        text = statement.encode()
        one = plain[0].ask(text)
        two = plain[1].ask(text) if one[0] != "57014" else one
        if two[0] == "57014":
            count["too slow"] += 1
            continue
        if one != two:
            count["no one answer"] += 1
            continue
        answers = [s.ask(text) for s in art]
        for n, a in enumerate(answers):
            if a[0] == "57014" and same[n].ask(text)[0] != "57014":
                answers[n] = patient[n].ask(text)
                count["slow with art only"] += 1
                with open(os.path.join(args.art, f"slow.{count['slow with art only']}.sql"), "w") as out:
                    out.write(f"-- {ART[n]}: {answers[n][0] or 'patience helped'}\n{statement};\n")
            elif a[0] == "57014":
                answers[n] = None
        # art has keys of more than 2,704 bytes
        if one[0] == "54000" and not any(a and a[0] for a in answers):
            count["too long for btree"] += 1
            continue
        if any(a not in (one, None) for a in answers):
            if not any(a and a[0] in ("LOST", "57014") for a in answers) and (
                    any(s.ask(text) != one for s in more)
                    or all(a in (one, None, s.ask(text)) for a, s in zip(answers, without))):
                count["no one answer"] += 1
                continue
        count["compared"] += 1
        count["errors" if one[0] else "answers"] += 1
        if one[1]:
            count["answers with rows"] += 1
        for a, settings in zip(answers, ART):
            name = f"{count['compared']}.{ART.index(settings)}"
            if a is None:
                count["too slow with these settings"] += 1
                continue
            for out in outcomes[:1] if a != one else outcomes:
                out.write(f"ok statements {name}\n")
            if a != one:
                count["differ"] += 1
                outcomes[1].write(f"failed statements {name}\n")
                for out, answer in zip(files, (one, a)):
                    out.write(f"-- {name}\n{shown(answer)}\n")
                    out.flush()
                with open(os.path.join(args.art, f"differs.{name}.sql"), "w") as out:
                    out.write(f"-- {settings}\n{statement};\n/* btree:\n{shown(one)}\nart:\n{shown(a)}\n*/\n")
    for name in ("statements", "compared", "answers", "answers with rows", "errors", "no one answer",
                 "too long for btree", "too slow", "too slow with these settings", "slow with art only", "not asked", "differ"):
        print(f"# sqlsmith: {name}: {count[name]}")
    scans = pq.PGconn.connect(b"dbname=smith_art").exec_(
        b"SELECT sum(idx_scan) FROM pg_stat_user_indexes s JOIN pg_class c ON c.oid = indexrelid "
        b"JOIN pg_am a ON a.oid = relam WHERE amname = 'art'")
    print(f"# sqlsmith: scans of art indexes: {scans.get_value(0, 0).decode()}")
    sys.stdout.flush()
    os._exit(0)


main()
