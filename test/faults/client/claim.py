"""Clients race for keys: a unique index lets one of them have each, and refuses the others
only because of a row that is there."""

import collections
import threading

from .session import FAILED, LEVELS, OK, READ_COMMITTED, SERIALIZABLE, UNKNOWN
from .workload import Workload

TRIES = 6       # clients that try each key
TAKEN = "taken"


class Claim(Workload):
    name = "claim"
    writes = 8
    indexes = ("claim_k", "claim_who")

    def __init__(self, run):
        super().__init__(run)
        self.lock = threading.Lock()
        self.tried = 0
        self.tries = collections.defaultdict(list)      # key -> [(who, outcome, generation)]

    def schema(self, engine):
        return [
            "CREATE TABLE claim (k int, who int, how text)",
            f"CREATE UNIQUE INDEX claim_k ON claim USING art (k) {engine()}",
            f"CREATE INDEX claim_who ON claim USING art (who) {engine()}",
        ]

    def write(self, session, rng):
        with self.lock:
            who, key = self.tried, self.tried // TRIES
            self.tried += 1
        how = rng.choice((self.insert, self.or_nothing, self.savepoint, self.by_update))
        level = READ_COMMITTED if how == self.or_nothing else rng.choice((READ_COMMITTED, SERIALIZABLE))
        outcome, value = session.tx(level, lambda session: how(session, key, who), also=("23505",))
        if (outcome, value) in ((FAILED, "23505"), (OK, TAKEN)):
            outcome = TAKEN
        with self.lock:
            self.tries[key].append((who, outcome, session.generation))
        self.run.count(self.name, how.__name__, outcome, value)
        if outcome == TAKEN:
            self.holder(session, key, session.generation)

    def insert(self, session, key, who):
        session.execute("INSERT INTO claim VALUES (%s, %s, 'insert')", (key, who))

    def or_nothing(self, session, key, who):
        text = "INSERT INTO claim VALUES (%s, %s, 'or nothing') ON CONFLICT (k) DO NOTHING"
        return TAKEN if session.execute(text, (key, who)).rowcount == 0 else None

    def savepoint(self, session, key, who):
        session.execute("SAVEPOINT s; INSERT INTO claim VALUES (%d, %d, 'undone'); ROLLBACK TO s" % (-key - 1, who))
        self.insert(session, key, who)

    def by_update(self, session, key, who):
        session.execute("INSERT INTO claim VALUES (%s, %s, 'update')", (-who - 1, who))
        session.way("index")
        if session.execute("UPDATE claim SET k = %s WHERE k = %s", (key, -who - 1)).rowcount != 1:
            self.differ(f"an UPDATE does not find the row {-who - 1} of its own transaction")

    def holder(self, session, key, generation):
        """Whoever was refused sees the row that was there before him."""
        rows = self.one_snapshot(
            session, READ_COMMITTED,
            lambda session: self.alike(session, "SELECT k, who FROM claim WHERE k = %s", [key], ("index",)),
        )
        if rows is not None and len(rows) != 1 and session.generation == generation:
            self.differ(f"key {key} was refused as taken, and its rows are {rows}")

    def read(self, session, rng):
        low = max(0, self.tried // TRIES - rng.randint(5, 60))

        def look(session):
            rows = self.alike(session, "SELECT k, who, how FROM claim WHERE k >= %s ORDER BY k, who", [low])
            self.alike(session, "SELECT who, k FROM claim WHERE who >= %s ORDER BY who, k", [low * TRIES])
            self.once(rows)

        self.one_snapshot(session, rng.choice(LEVELS[1:]), look)

    def once(self, rows):
        for a, b in zip(rows, rows[1:]):
            if a[0] == b[0]:
                self.differ(f"a unique index let two rows in: {a} and {b}")
        if rows and rows[0][0] < 0:
            self.differ(f"a row is there that nobody committed: {rows[0]}")

    def calm(self, session):
        rows = self.calmly(session, lambda session: self.alike(
            session, "SELECT k, who, how FROM claim WHERE k > -1000000000 ORDER BY k, who"))
        self.once(rows)
        holders = {key: who for key, who, _ in rows}
        for key, tries in self.tries.items():
            acknowledged = [who for who, outcome, _ in tries if outcome == OK]
            maybe = [who for who, outcome, _ in tries if outcome == UNKNOWN]
            taken = any(outcome == TAKEN and g == session.generation for _, outcome, g in tries)
            holder = holders.get(key)
            if len(acknowledged) > 1 or (
                holder not in acknowledged if acknowledged else holder is not None and holder not in maybe
            ):
                self.differ(f"key {key} belongs to {holder}, acknowledged {acknowledged}, perhaps {maybe}")
            if holder is None and taken:
                self.differ(f"key {key} was refused as taken, and nobody has it: {tries}")

    def tidy(self, session):
        with self.lock:
            before = self.tried // TRIES - 50
            # nobody tries these again
            for key in [key for key in self.tries if key < before]:
                del self.tries[key]
        session.tx(READ_COMMITTED, lambda session: session.execute("DELETE FROM claim WHERE k < %s", [before]))

    def plants(self):
        def twice(session):
            with self.lock:
                self.tries[self.tried // TRIES - 1] += [(-1, OK, session.generation), (-2, OK, session.generation)]

        def gone(session):
            session.execute("DELETE FROM claim WHERE k = (SELECT max(k) FROM claim)")

        return {
            "two are told that a key is theirs": twice,
            "a row that was acknowledged goes": gone,
            "an index without new entries": self.lying_index("claim_k"),
        }
