"""What the workloads share."""

import time

from .session import OK, REPEATABLE_READ, SERIALIZABLE, Difference


class Workload:
    """Tables whose only indexes are art, clients that change and read them, and what must be so.

    write() and read() are one operation of a client each, with the client's own random numbers.
    read() also runs on the standby.  calm() is called when no operation is under way, on the
    primary and then on the standby that has caught up.  A wrong answer raises Difference.
    """

    name = None
    writes = 3      # of so many operations, beside one that reads
    indexes = ()    # their names

    def __init__(self, run):
        self.run = run

    def schema(self, engine):
        """Statements; engine() is the WITH clause of the next engine."""
        raise NotImplementedError

    def drop(self):
        return [f"DROP TABLE IF EXISTS {self.name}"]

    def write(self, session, rng):
        raise NotImplementedError

    def read(self, session, rng):
        raise NotImplementedError

    def calm(self, session):
        raise NotImplementedError

    def tidy(self, session):
        """After calm(), on the primary: takes away what nobody asks for again."""

    def plants(self):
        """Wrong answers to plant, by name: each a function of a session of the primary."""
        return {}

    def differ(self, what):
        raise Difference(f"{self.name}: {what}")

    def one_snapshot(self, session, level, body):
        """The reader's transaction; returns its value, or None where the server gave no answer."""
        if session.role == "standby" and level == SERIALIZABLE:
            level = REPEATABLE_READ     # a standby refuses it
        outcome, value = session.tx(level, body, "TRANSACTION READ ONLY")
        self.run.count(self.name, "read " + session.role, outcome, value)
        return value if outcome == OK else None

    def calmly(self, session, body):
        """A reader's transaction at rest, when no fault is an excuse."""
        end = time.monotonic() + 60
        tries = 0
        while True:
            outcome, value = session.tx(REPEATABLE_READ, body)
            if outcome == OK:
                return value
            # replay of what autovacuum did has its way on a standby
            tries += value == "40001"
            # a machine that has much to do may not answer within the seconds that a connection has
            if tries == 10 or value not in ("40001", "08006") or time.monotonic() > end:
                break
            time.sleep(0.1)
        self.differ(f"at rest the {session.role} gives no answer: {value}")
        return None

    def alike(self, session, query, args=None, ways=("index", "bitmap", "seq")):
        """The rows of a query, which must be the same in every way, within one snapshot."""
        first = None
        for way in ways:
            session.way(way)
            rows = session.rows(query, args)
            if first is None:
                first = rows
            elif rows != first:
                mine, others = set(rows), set(first)
                self.differ(
                    f"{query} {args}: {ways[0]} gives {len(first)} rows and {way} {len(rows)};"
                    f" {sorted(others - mine)[:5]} instead of {sorted(mine - others)[:5]}"
                )
        return first

    def lying_index(self, index):
        """A plant: rows that come from now on have no entry in that index."""

        def plant(session):
            session.execute("SET allow_system_table_mods = on")
            session.execute(f"UPDATE pg_index SET indisready = false WHERE indexrelid = '{index}'::regclass")
            session.execute("RESET allow_system_table_mods")

        return plant
