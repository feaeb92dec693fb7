"""Write skew: serializable transactions that read an index and write by what it says."""

from .session import LEVELS, READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE
from .workload import Workload

GROUPS = 12
BY_G, BY_WHO = (f"SELECT g, who FROM skew WHERE {column} >= 0 ORDER BY g, who" for column in ("g", "who"))


class Skew(Workload):
    """A client puts a row into a group that has none, and takes it out of one that has.  Two of them
    at once would both find none: at SERIALIZABLE no group ever has two rows."""

    name = "skew"
    indexes = ("skew_g", "skew_who")

    def __init__(self, run):
        super().__init__(run)
        self.level = SERIALIZABLE

    def schema(self, engine):
        return [
            "CREATE TABLE skew (g int, who int)",
            f"CREATE INDEX skew_g ON skew USING art (g) {engine()}",
            f"CREATE INDEX skew_who ON skew USING art (who, g) {engine()}",
        ]

    def write(self, session, rng):
        # few groups, so that many clients meet
        group, who = rng.randrange(GROUPS), rng.randrange(10**6)
        way = rng.choice(("index", "only", "bitmap"))

        def write(session):
            session.way(way)
            rows = session.rows("SELECT g FROM skew WHERE g = %s", [group])
            self.once(rows)
            if rows:
                session.execute("DELETE FROM skew WHERE g = %s", [group])
            else:
                session.execute("INSERT INTO skew VALUES (%s, %s)", (group, who))

        outcome, value = session.tx(self.level, write)
        self.run.count(self.name, "write", outcome, value)

    def read(self, session, rng):
        level = rng.choice(LEVELS)
        query = rng.choice((BY_G, BY_WHO))
        ways = ("index", "seq") if level != READ_COMMITTED else ("index",)
        rows = self.one_snapshot(session, level, lambda session: self.alike(session, query, None, ways))
        if rows is not None:
            self.once(rows)

    def once(self, rows):
        for a, b in zip(rows, rows[1:]):
            if a[0] == b[0]:
                self.differ(f"two serializable transactions found no row, and each put one in: {a} {b}")

    def calm(self, session):
        self.once(self.calmly(session, lambda session: self.alike(session, BY_G)))

    def plants(self):
        def weaker(session):
            self.level = REPEATABLE_READ

        return {
            "a level that allows it": weaker,
            "an index without new entries": self.lying_index("skew_g"),
        }
