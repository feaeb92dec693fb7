"""Lists to which clients append: nothing acknowledged is lost, nothing is there twice, and
two readers never see two elements in different orders."""

import itertools
import threading
import time

from .session import FAILED, OK, READ_COMMITTED, REPEATABLE_READ, UNKNOWN
from .workload import Workload

LISTS, LONGEST = 12, 120


class Append(Workload):
    """INSERT ... ON CONFLICT DO UPDATE finds the list by a unique art index."""

    name = "append"
    indexes = ("append_k", "append_n")

    def __init__(self, run):
        super().__init__(run)
        self.lock = threading.Lock()
        self.elements = itertools.count(1)
        self.keys = itertools.count(LISTS)
        self.current = list(range(LISTS))
        self.said = {}      # key -> {element: OK, FAILED, UNKNOWN or None, which is under way}
        self.seen = {}      # (key, node, generation) -> the longest list that was read
        self.full = []

    def schema(self, engine):
        return [
            "CREATE TABLE append (k int, list text, n int)",
            f"CREATE UNIQUE INDEX append_k ON append USING art (k) {engine()}",
            f"CREATE INDEX append_n ON append USING art (n, k) {engine()}",
        ]

    def write(self, session, rng):
        place = rng.randrange(LISTS)
        with self.lock:
            key, element = self.current[place], next(self.elements)
            said = self.said.setdefault(key, {})
            said[element] = None
        level = rng.choice((READ_COMMITTED, READ_COMMITTED, REPEATABLE_READ))

        def append(session):
            session.execute(
                "INSERT INTO append AS a VALUES (%s, %s, 1) ON CONFLICT (k)"
                " DO UPDATE SET list = a.list || ' ' || excluded.list, n = a.n + 1",
                (key, str(element)),
            )

        outcome, value = session.tx(level, append)
        self.run.count(self.name, "append", outcome, value)
        with self.lock:
            said[element] = outcome
            if len(said) >= LONGEST and self.current[place] == key:
                self.current[place] = next(self.keys)
                self.full.append(key)

    def read(self, session, rng):
        with self.lock:
            key = rng.choice(self.current)
            acknowledged = self.acknowledged(key)
        self.one_snapshot(session, REPEATABLE_READ, lambda session: self.look(session, key, acknowledged))

    def acknowledged(self, key):
        return {e for e, outcome in self.said.get(key, {}).items() if outcome == OK}

    def look(self, session, key, acknowledged):
        rows = self.alike(session, "SELECT k, list, n FROM append WHERE k = %s", [key])
        if len(rows) > 1:
            self.differ(f"list {key} has {len(rows)} rows")
        elements = [int(e) for row in rows for e in row[1].split()]
        if rows:
            where = "SELECT k, list, n FROM append WHERE n = %s AND k = %s"
            if self.alike(session, where, [rows[0][2], key]) != rows or rows[0][2] != len(elements):
                self.differ(f"list {key}, by its length {rows[0][2]}, is not that of {len(elements)}")
        if len(set(elements)) != len(elements):
            self.differ(f"list {key} has an element twice: {elements}")
        with self.lock:
            said = dict(self.said.get(key, {}))
            name = (key, session.role, session.generation)
            longest = self.seen.get(name, [])
            if len(elements) > len(longest):
                self.seen[name] = elements
        wrong = [e for e in elements if said.get(e, FAILED) == FAILED]
        if wrong:
            self.differ(f"list {key} has {wrong}, which were never appended or were refused")
        short = min(len(longest), len(elements))
        if longest[:short] != elements[:short]:
            self.differ(f"list {key} is {elements} and was {longest}")
        if session.role == "primary" and not acknowledged <= set(elements):
            self.differ(f"list {key} has lost {sorted(acknowledged - set(elements))}: {elements}")
        return elements

    def calm(self, session):
        def check(session):
            return {key: self.look(session, key, self.acknowledged(key)) for key in list(self.said)}

        lists = self.calmly(session, check)
        if session.role == "standby":
            for key, elements in lists.items():
                if not self.acknowledged(key) <= set(elements):
                    self.differ(f"on the standby at rest list {key} has lost elements: {elements}")
            return
        for key, elements in lists.items():
            for element, outcome in self.said[key].items():
                if outcome in (UNKNOWN, None):
                    self.said[key][element] = OK if element in elements else FAILED

    def tidy(self, session):
        done, self.full = self.full, []
        session.tx(READ_COMMITTED, lambda session: session.execute("DELETE FROM append WHERE k = ANY(%s)", [done]))
        for key in done:
            del self.said[key]
        self.seen = {name: longest for name, longest in self.seen.items() if name[0] in self.said}

    def plants(self):
        def changed(change, more):
            def plant(session):
                """To a list that is read, as soon as there is one."""
                for _ in range(100):
                    if session.execute(
                        f"UPDATE append SET list = {change}, n = n + {more}"
                        " WHERE k = (SELECT k FROM append WHERE k = ANY(%s) LIMIT 1)", [self.current],
                    ).rowcount:
                        return
                    time.sleep(0.1)
                self.differ("no list is there to plant a difference in")

            return plant

        return {
            "an element twice": changed("list || ' ' || split_part(list, ' ', 1)", 1),
            "another element": changed("regexp_replace(list, '^[0-9]+', '0')", 0),
            "an index without new entries": self.lying_index("append_n"),
        }
