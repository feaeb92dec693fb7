"""Long fork: two readers must not see two writes in different orders."""

import threading

from .session import LEVELS, OK, READ_COMMITTED
from .workload import Workload

SIZE, ACTIVE = 6, 4


class Fork(Workload):
    """Groups of keys.  Each is written once: in even groups its row is inserted, in odd ones
    it changes, and gets another entry.  What readers of one server have seen of a group must be a
    chain of subsets, and have what was acknowledged before the reader began."""

    name = "fork"
    indexes = ("fork_k", "fork_v")

    def __init__(self, run):
        super().__init__(run)
        self.lock = threading.Lock()
        self.todo = {}      # group -> keys that are still to be written
        self.known = {}     # group -> {key: True when acknowledged, False when not}
        self.masks = {}     # (group, role, generation) -> what was seen, sets of keys
        self.groups = 0
        self.lie = False

    def schema(self, engine):
        return [
            "CREATE TABLE fork (k int, v int, pad text)",
            f"CREATE UNIQUE INDEX fork_k ON fork USING art (k) {engine()}",
            f"CREATE INDEX fork_v ON fork USING art (v, k) {engine()}",
        ]

    def write(self, session, rng):
        with self.lock:
            group = self.some_group(rng)
            fresh = group is None
            if fresh:
                group, self.groups = self.groups, self.groups + 1
            else:
                key = self.todo[group].pop()
                if not self.todo[group]:
                    del self.todo[group]
        if fresh:
            self.begin(session, rng, group)
            return

        def write(session):
            session.way("index")
            if group % 2 == 0:
                session.execute("INSERT INTO fork VALUES (%s, 1, '')", [key])
            elif session.execute("UPDATE fork SET v = 1 WHERE k = %s", [key]).rowcount != 1:
                self.differ(f"an UPDATE does not find key {key}")

        outcome, value = session.tx(rng.choice(LEVELS), write)
        self.run.count(self.name, "update" if group % 2 else "insert", outcome, value)
        with self.lock:
            self.known[group][key] = outcome == OK

    def some_group(self, rng):
        return rng.choice(list(self.todo)) if len(self.todo) >= ACTIVE else None

    def begin(self, session, rng, group):
        keys = [group * SIZE + i for i in range(SIZE)]
        if group % 2:
            outcome, value = session.tx(READ_COMMITTED, lambda session: session.execute(
                "INSERT INTO fork SELECT k, 0, '' FROM unnest(%s::int[]) k", [keys]))
            self.run.count(self.name, "begin", outcome, value)
            if outcome != OK:
                return      # nobody writes to this group
        rng.shuffle(keys)
        with self.lock:
            self.todo[group] = keys
            self.known[group] = {}

    def read(self, session, rng):
        with self.lock:
            groups = sorted(self.known)[-ACTIVE - 2:]
            if not groups:
                return
            group = rng.choice(groups)
            must = {key for key, sure in self.known[group].items() if sure}
        how = rng.choice((self.by_range, self.by_value, self.one_by_one, self.in_order))
        level = rng.choice(LEVELS[1:] if how == self.one_by_one else LEVELS)
        way = rng.choice(("index", "only", "bitmap", "seq"))

        def look(session):
            session.way(way)
            return frozenset(how(session, range(group * SIZE, group * SIZE + SIZE)))

        seen = self.one_snapshot(session, level, look)
        if seen is not None:
            if self.lie and len(seen) > 1:
                seen -= {rng.choice(sorted(seen))}
            self.judge(session, group, seen, must, f"{how.__name__} {way} {level}")

    def by_range(self, session, keys):
        return [k for k, v in session.rows("SELECT k, v FROM fork WHERE k BETWEEN %s AND %s", [keys[0], keys[-1]]) if v]

    def by_value(self, session, keys):
        return [k for (k,) in session.rows("SELECT k FROM fork WHERE v = 1 AND k = ANY(%s)", [list(keys)])]

    def one_by_one(self, session, keys):
        return [k for k in reversed(keys) if session.rows("SELECT v FROM fork WHERE k = %s", [k]) == [(1,)]]

    def in_order(self, session, keys):
        text = "SELECT k FROM fork WHERE v = 1 AND k BETWEEN %s AND %s ORDER BY v DESC, k DESC"
        return [k for (k,) in session.rows(text, [keys[0], keys[-1]])]

    def judge(self, session, group, seen, must, how):
        with self.lock:
            masks = self.masks.setdefault((group, session.role, session.generation), set())
            forks = [other for other in masks if not (seen <= other or other <= seen)]
            masks.add(seen)
        if forks:
            self.differ(f"group {group}: {how} saw {sorted(seen)}, another reader {sorted(forks[0])}")
        if session.role == "primary" and not must <= seen:
            self.differ(f"group {group}: {how} saw {sorted(seen)}, acknowledged before were {sorted(must)}")

    def calm(self, session):
        def check(session):
            return self.alike(session, "SELECT k, v FROM fork WHERE k >= 0 ORDER BY k")

        written = {k for k, v in self.calmly(session, check) if v}
        for group, known in self.known.items():
            must = {key for key, sure in known.items() if sure}
            seen = frozenset(k for k in range(group * SIZE, group * SIZE + SIZE) if k in written)
            if not must <= seen:
                self.differ(f"at rest, {session.role}: group {group} has lost {sorted(must - seen)}")
            self.judge(session, group, seen, must, "at rest")

    def tidy(self, session):
        with self.lock:
            done = [group for group in sorted(self.known)[:-ACTIVE - 2] if group not in self.todo]
        keys = [group * SIZE + i for group in done for i in range(SIZE)]
        session.tx(READ_COMMITTED, lambda session: session.execute("DELETE FROM fork WHERE k = ANY(%s)", [keys]))
        for group in done:
            del self.known[group]
        self.masks = {name: masks for name, masks in self.masks.items() if name[0] in self.known}

    def plants(self):
        def lie(session):
            self.lie = True

        return {
            "readers that miss a write": lie,
            "an index without new entries": self.lying_index("fork_k"),
        }
