"""Rows that come and go: what was acknowledged is so, and every way to read says the same."""

import itertools
import time

from .facts import GONE, MAYBE, THERE, Facts
from .session import FAILED, LEVELS, OK, REPEATABLE_READ, SERIALIZABLE
from .workload import Workload

MOST = 2500
MANY = 2**31 - 1


class Sets(Workload):
    """One table gets rising keys, in the small file system; another one keys in no order."""

    name = "set"
    indexes = ("set_rise_id", "set_rise_h", "set_wild_id", "set_wild_h")

    def __init__(self, run):
        super().__init__(run)
        self.facts = {"rise": Facts(), "wild": Facts()}
        self.prepared = itertools.count()
        self.next = {name: itertools.count(1) for name in self.facts}

    def schema(self, engine):
        statements = []
        for name in self.facts:
            where = "TABLESPACE small" if name == "rise" and self.run.cluster.small else ""
            statements += [
                f"CREATE TABLE set_{name} (id bigint, h int, pad text) {where}",
                f"CREATE UNIQUE INDEX set_{name}_id ON set_{name} USING art (id) {engine()}",
                f"CREATE INDEX set_{name}_h ON set_{name} USING art (h) {engine()}",
            ]
        return statements

    def drop(self):
        return [f"DROP TABLE IF EXISTS set_{name}" for name in self.facts]

    def write(self, session, rng):
        name = rng.choice(tuple(self.facts))
        facts = self.facts[name]
        size = rng.choice((1, 1, 3, 20, 80))
        if facts.count(THERE) > MOST or rng.random() < 0.25:
            self.delete(session, rng, name, size)
            return
        if rng.random() < 0.5:
            keys = facts.take(size, GONE)
        else:
            keys = [next(self.next[name]) for _ in range(size)]
            if name == "wild":
                keys = [key * 48271 % MANY for key in keys]
            facts.put(keys, MAYBE)
        pad = "x" * rng.choice((0, 0, 200))

        def insert(session):
            session.execute(
                f"INSERT INTO set_{name} SELECT i, i %% 97, %s FROM unnest(%s::bigint[]) i", (pad, keys)
            )

        self.did(session, rng, insert, "insert", facts, keys, THERE)

    def delete(self, session, rng, name, size):
        facts = self.facts[name]
        keys = facts.take(size, THERE)

        def delete(session):
            session.way(rng.choice(("index", "bitmap")))
            gone = session.execute(f"DELETE FROM set_{name} WHERE id = ANY(%s)", [keys]).rowcount
            if gone != len(keys):
                self.differ(f"a DELETE of {len(keys)} rows of set_{name} found {gone}")

        self.did(session, rng, delete, "delete", facts, keys, GONE)

    def did(self, session, rng, body, what, facts, keys, wanted):
        """A transaction of one statement, which does all of it or nothing."""
        prepare = f"set {next(self.prepared)}" if rng.random() < 0.1 else None
        outcome, value = session.tx(rng.choice(LEVELS), body, prepare=prepare)
        self.run.count(self.name, what + " in two phases" if prepare else what, outcome, value)
        if outcome == OK:
            facts.put(keys, wanted)
        elif outcome == FAILED:
            facts.put(keys, THERE if wanted == GONE else GONE)
            if value == "23505":
                self.differ(f"a key was refused as a duplicate that was not there, of {keys[:80]}")

    def read(self, session, rng):
        name = rng.choice(tuple(self.facts))
        since = self.facts[name].now()
        level = rng.choice((REPEATABLE_READ, SERIALIZABLE))
        seen = self.one_snapshot(session, level, lambda session: self.look(session, name, rng))
        # a standby may be behind
        if seen is not None and session.role == "primary":
            self.facts[name].compare(seen, since, f"set_{name}")

    def look(self, session, name, rng=None):
        """The keys of a snapshot, read in order, by a sequential scan, by the other index, and one by one."""
        table = f"set_{name}"
        rows = self.alike(session, f"SELECT id, h FROM {table} WHERE id >= 0 ORDER BY id")
        by_h = f"SELECT h, count(*), sum(id) FROM {table} WHERE h BETWEEN 10 AND 60 GROUP BY h ORDER BY h"
        self.alike(session, by_h, None, ("only", "bitmap", "seq"))
        keys = [key for key, _ in rows]
        if any(a >= b for a, b in zip(keys, keys[1:])):
            self.differ(f"{table} is not in order, or has a key twice: {keys}")
        wanted = rng.sample(keys, min(20, len(keys))) if rng else keys
        session.way("index")
        found = sorted(key for (key,) in session.rows(f"SELECT id FROM {table} WHERE id = ANY(%s)", [wanted]))
        if found != sorted(wanted):
            self.differ(f"{table}: look-ups find {len(found)} of {len(wanted)} keys, not {sorted(set(wanted) - set(found))[:9]}")
        for key in wanted[:5]:
            rows = session.rows(f"SELECT id FROM {table} WHERE id = %s", [key])
            if rows != [(key,)]:
                self.differ(f"{table}: a look-up of {key} finds {rows}")
        return set(keys)

    def calm(self, session):
        for name, facts in self.facts.items():
            since = facts.now()
            seen = self.calmly(session, lambda session, name=name: self.look(session, name))
            facts.compare(seen, since, f"at rest, {session.role}, set_{name}")
            if session.role == "primary":
                facts.resolve(seen)
                facts.forget(5000)

    def plants(self):
        def some_key(facts):
            """One that is there, as soon as there is one; nobody may then change it."""
            for _ in range(100):
                keys = facts.take(1, THERE)
                if keys:
                    return keys[0]
                time.sleep(0.1)
            return self.differ("no row is there to plant a difference in")

        def forget(session):
            """The oracle loses a row that was acknowledged."""
            self.facts["wild"].put([some_key(self.facts["wild"])], GONE)

        def lose(session):
            """The server does."""
            key = some_key(self.facts["rise"])
            session.execute("DELETE FROM set_rise WHERE id = %s", [key])
            self.facts["rise"].put([key], THERE)

        return {
            "an acknowledged row that the oracle forgets": forget,
            "a row that nobody deleted goes": lose,
            "an index without new entries": self.lying_index("set_wild_h"),
        }
