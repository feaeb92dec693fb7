"""Runs files of the sqllogictest form, DuckDB's dialect of it, against PostgreSQL.

A group is a file.  Its result has each record with its SQLSTATE or its rows, sorted: that is
what two runs are compared by.  A record is "ok" if it does what the file says, "failed" if not
(PostgreSQL does not know all that DuckDB's SQL has), and "skipped" if it is not for us:
plans, threads, files.  "restart" and "load" make a new session.
"""
import argparse
import os
import re

import psycopg
from psycopg import pq

# DuckDB's names for what PostgreSQL has
PRELUDE = """
CREATE FUNCTION range(a bigint, b bigint, s bigint = 1) RETURNS SETOF bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT i FROM generate_series(a, b - sign(s)::bigint, s) i';
CREATE FUNCTION range(b bigint) RETURNS SETOF bigint LANGUAGE sql IMMUTABLE AS 'SELECT i FROM generate_series(0, b - 1) i';
CREATE DOMAIN tinyint smallint CHECK (VALUE BETWEEN -128 AND 127);
CREATE DOMAIN utinyint smallint CHECK (VALUE BETWEEN 0 AND 255);
CREATE DOMAIN usmallint int CHECK (VALUE BETWEEN 0 AND 65535);
CREATE DOMAIN uinteger bigint CHECK (VALUE BETWEEN 0 AND 4294967295);
CREATE DOMAIN uint32 bigint CHECK (VALUE BETWEEN 0 AND 4294967295);
CREATE DOMAIN int64 bigint;
CREATE DOMAIN int32 int;
CREATE DOMAIN ubigint numeric CHECK (VALUE BETWEEN 0 AND 18446744073709551615);
CREATE DOMAIN hugeint numeric;
CREATE DOMAIN double float8;
CREATE DOMAIN string text;
CREATE DOMAIN blob bytea;
CREATE DOMAIN datetime timestamp;
"""
SKIPPED = re.compile(r"\s*(EXPLAIN|PRAGMA|ATTACH|DETACH|USE|COPY|EXPORT|IMPORT|CHECKPOINT|FORCE|INSTALL|LOAD|CALL)\b", re.I)


class Run:
    def __init__(self, group, out):
        self.group = group
        self.out = out
        self.sessions = {}
        self.skip = 0
        self.number = 0
        self.result = open(os.path.join(out, "results", f"{group}.out"), "w")
        self.outcomes = open(os.path.join(out, "outcomes"), "a")

    def session(self, name):
        if name not in self.sessions:
            pg = pq.PGconn.connect(b"")
            if pg.status != pq.ConnStatus.OK:
                raise SystemExit(pg.error_message.decode())
            for setting in ("lock_timeout = '1s'", "statement_timeout = '60s'", "client_min_messages = error",
                            "search_path = logic, public"):
                pg.exec_(f"SET {setting}".encode())
            self.sessions[name] = pg
        return self.sessions[name]

    def restart(self):
        for pg in self.sessions.values():
            pg.finish()
        self.sessions = {}

    def check(self, script):
        """The art indexes that the file left, by check.sql, whose warnings differ from the other run's silence."""
        with psycopg.connect("", autocommit=True) as db:
            db.add_notice_handler(lambda d: self.result.write(f"{d.message_primary}\n"))
            db.execute("SET search_path = art_here, public")
            with open(script, encoding="utf-8") as text, open(os.path.join(self.out, "../checked"), "a") as out:
                out.write("%d\n" % db.execute("SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam "
                                              "WHERE amname = 'art' AND relkind = 'i'").fetchone())
                db.execute(text.read())

    def note(self, outcome, what=""):
        self.outcomes.write(f"{outcome} {self.group} {self.number}{' ' + what if what else ''}\n")

    def record(self, words, sql, wanted):
        """One statement or query: asks, writes the answer, and judges it."""
        self.number += 1
        if self.skip or SKIPPED.match(sql) or words[1:2] == ["maybe"]:
            self.note("skipped")
            return
        kind = words[0]
        names = words[2:]
        # "query TYPES [sort] [label]": a label is a session too, unless it is for hashes
        name = next((w for w in names if w.startswith("con")), "")
        # "USING ART" is DuckDB's own
        sql = re.sub(r"\bUSING\s+art\b", "", sql, flags=re.I)
        got = self.session(name).exec_(sql.encode())
        state = (got.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        rows = [[self.text(got.get_value(r, c)) for c in range(got.nfields)] for r in range(got.ntuples)]
        self.result.write(f"{self.number} {kind} {state or len(rows)}\n")
        for row in sorted(rows):
            self.result.write("\t".join(row) + "\n")
        if kind == "statement":
            good = bool(state) == (words[1] == "error")
        else:
            good = not state and self.same(rows, wanted, names)
        self.note("ok" if good else "failed", state)

    @staticmethod
    def text(value):
        if value is None:
            return "NULL"
        text = value.decode(errors="replace")
        return {"t": "true", "f": "false", "": "(empty)"}.get(text, text)

    @staticmethod
    def same(rows, wanted, names):
        """Is the answer the wanted one?  Wanted rows stand one in a line, or one value in a line."""
        if len(wanted) == 1 and "values hashing to" in wanted[0]:
            return True
        flat = [v for row in rows for v in row]
        lines = ["\t".join(row) for row in rows]
        if any("sort" in n and n != "nosort" for n in names):
            flat, lines, wanted = sorted(flat), sorted(lines), sorted(wanted)
        return wanted in (flat, lines)

    def lines(self, lines, values):
        """The records of some lines, in which ${NAME} has these values."""
        at = 0
        while at < len(lines):
            line = lines[at].split("#")[0].strip() if lines[at].startswith("#") else lines[at].strip()
            for name, value in values.items():
                line = line.replace("${%s}" % name, value)
            words = line.split()
            at += 1
            if not words:
                continue
            if words[0] in ("loop", "foreach", "concurrentloop", "concurrentforeach"):
                end = self.end(lines, at)
                if words[0].endswith("loop"):
                    each = [str(i) for i in range(int(words[2]), min(int(words[3]), int(words[2]) + 2000))]
                else:
                    each = words[2:]
                for value in each:
                    self.lines(lines[at:end], {**values, words[1]: value})
                at = end + 1
            elif words[0] in ("onlyif", "skipif"):
                # for one thread of many, or another database: without the next record
                at = self.after(lines, at)
            elif words[0] == "mode":
                self.skip += {"skip": 1, "unskip": -1}.get(words[1], 0)
            elif words[0] in ("restart", "load", "reconnect"):
                self.restart()
            elif words[0] in ("statement", "query"):
                block = lines[at:self.after(lines, at)]
                at += len(block)
                text = "\n".join(block)
                for name, value in values.items():
                    text = text.replace("${%s}" % name, value)
                sql, _, wanted = text.partition("\n----")
                self.record(words, sql, [w.strip() for w in wanted.strip("\n").split("\n")] if wanted.strip() else [])

    @staticmethod
    def after(lines, at):
        """The line after a record's end, which is an empty one."""
        while at < len(lines) and lines[at].strip():
            at += 1
        return at

    @staticmethod
    def end(lines, at):
        depth = 1
        while at < len(lines):
            word = (lines[at].split() or [""])[0]
            depth += {"loop": 1, "foreach": 1, "concurrentloop": 1, "concurrentforeach": 1, "endloop": -1}.get(word, 0)
            if depth == 0:
                return at
            at += 1
        return at


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--out", required=True)
    args.add_argument("--top", required=True)
    args.add_argument("--check")
    args.add_argument("files", nargs="+")
    args = args.parse_args()
    with psycopg.connect("", autocommit=True) as db:
        db.execute(PRELUDE)
    for file in args.files:
        group = os.path.splitext(os.path.relpath(file, args.top))[0].replace("/", ".")
        with psycopg.connect("", autocommit=True) as db:
            db.execute("DROP SCHEMA IF EXISTS logic CASCADE; CREATE SCHEMA logic; GRANT ALL ON SCHEMA logic TO PUBLIC")
        run = Run(group, args.out)
        with open(file, encoding="utf-8") as text:
            run.lines(text.read().split("\n"), {})
        run.restart()
        if args.check:
            run.check(args.check)


main()
