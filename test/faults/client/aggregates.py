"""Counts and sums from an index, beside those of a sequential scan in the same snapshot."""

from .session import LEVELS, READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE
from .workload import Workload

GROUPS, ROWS = 40, 3000


class Aggregates(Workload):
    """Its commits are asynchronous, so each crash loses some.  Its keys are compared ones, too."""

    name = "agg"
    writes = 2
    indexes = ("agg_gv", "agg_v", "agg_x")
    queries = (
        "SELECT g, count(*), sum(v), min(v), max(v) FROM agg WHERE g BETWEEN {a} AND {b} GROUP BY g ORDER BY g",
        "SELECT count(*), sum(v) FROM agg WHERE v BETWEEN {a} AND {b} * 25",
        "SELECT DISTINCT g FROM agg WHERE g >= 0 ORDER BY g",
        "SELECT g, max(v) FROM agg WHERE g > {a} GROUP BY g ORDER BY g",
        "SELECT count(DISTINCT g), min(g), max(g) FROM agg",
        "SELECT count(*), min(x), max(x) FROM agg WHERE x BETWEEN {a} + 0.5 AND {b} * 10 + 0.5",
        "SELECT count(*), count(note) FROM agg WHERE g = {a} AND v < 500",
        "SELECT count(*) FROM agg a JOIN agg b ON b.g = a.g AND b.v = a.v WHERE a.g = {a}",
        "SELECT g, v, x FROM agg WHERE (g, v) > ({a}, 500) ORDER BY g, v, x LIMIT 2000",
    )

    def schema(self, engine):
        return [
            "CREATE TABLE agg (g int, v int, x numeric, note text) WITH (fillfactor = 80)",
            f"CREATE INDEX agg_gv ON agg USING art (g, v) {engine()}",
            f"CREATE INDEX agg_v ON agg USING art (v) {engine()}",
            "CREATE INDEX agg_x ON agg USING art (x)",
            f"INSERT INTO agg SELECT i % {GROUPS}, i % 1000, i / 7.0, 'n' FROM generate_series(1, {ROWS}) i",
        ]

    def write(self, session, rng):
        g, v, n = rng.randrange(GROUPS), rng.randrange(1000), rng.randint(1, 60)
        what, text = rng.choice((
            ("insert", f"INSERT INTO agg SELECT {g}, i % 1000, i / 7.0, 'n' FROM generate_series({v}, {v + n}) i"
             f" WHERE (SELECT count(*) < {ROWS // GROUPS * 2} FROM agg WHERE g = {g})"),
            ("delete", f"DELETE FROM agg WHERE g = {g} AND v BETWEEN {v} AND {v + n}"),
            ("move", f"UPDATE agg SET g = {rng.randrange(GROUPS)}, v = v + 1 WHERE g = {g} AND v BETWEEN {v} AND {v + n // 4}"),
            ("hot", f"UPDATE agg SET note = 'n' || v WHERE v = {v}"),
            ("abort", f"INSERT INTO agg SELECT {g}, {v}, i, 'aborted' FROM generate_series(1, {n}) i"),
        ))

        def change(session):
            session.way(rng.choice(("index", "bitmap")))
            session.execute(text)
            if what == "abort":
                session.execute("ROLLBACK; BEGIN")

        outcome, value = session.tx(rng.choice(LEVELS), change, "synchronous_commit = off")
        self.run.count(self.name, what, outcome, value)

    def read(self, session, rng):
        a = rng.randrange(GROUPS)
        b = rng.randint(a, GROUPS)
        queries = [q.format(a=a, b=b) for q in rng.sample(self.queries, 4)]
        self.one_snapshot(session, rng.choice((REPEATABLE_READ, SERIALIZABLE)), lambda session: self.ask(session, queries))

    def ask(self, session, queries):
        for query in queries:
            self.alike(session, query, None, ("seq", "only", "bitmap", "index"))

    def calm(self, session):
        queries = [q.format(a=a, b=b) for q in self.queries for a, b in ((0, GROUPS), (7, 11))]
        self.calmly(session, lambda session: self.ask(session, queries))

    def plants(self):
        return {"an index without new entries": self.lying_index("agg_gv")}
