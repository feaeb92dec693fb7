"""Transfers between accounts: in any snapshot no account is missing, and the sum is the same."""

import time

from .session import BY_INDEX, LEVELS, READ_COMMITTED
from .workload import Workload

ACCOUNTS, EACH = 60, 100


class Bank(Workload):
    name = "bank"
    indexes = ("bank_id", "bank_name", "bank_balance")

    def schema(self, engine):
        return [
            "CREATE TABLE bank (id int, name text COLLATE \"C\", balance int, moves int) WITH (fillfactor = 60)",
            f"CREATE UNIQUE INDEX bank_id ON bank USING art (id) {engine()}",
            f"CREATE UNIQUE INDEX bank_name ON bank USING art (name) INCLUDE (balance) {engine()}",
            f"CREATE INDEX bank_balance ON bank USING art (balance, id) {engine()}",
            f"INSERT INTO bank SELECT i, 'account ' || i, {EACH}, 0 FROM generate_series(0, {ACCOUNTS - 1}) i",
        ]

    def write(self, session, rng):
        # some accounts have most of the transfers, and so many versions
        a = int(ACCOUNTS * rng.random() ** 4)
        b = (a + rng.randint(1, ACCOUNTS - 1)) % ACCOUNTS
        amount = rng.randint(1, 9)
        level = rng.choice(LEVELS)
        column = rng.choice(("id", "name"))

        def key(i):
            return i if column == "id" else f"account {i}"

        def transfer(session):
            session.way("index")
            lock = "FOR UPDATE" if level == READ_COMMITTED else ""
            found = dict(session.rows(
                f"SELECT id, balance FROM bank WHERE {column} = ANY(%s) ORDER BY id {lock}", [[key(a), key(b)]]
            ))
            if sorted(found) != sorted((a, b)):
                self.differ(f"of accounts {a} and {b} a look-up by {column} found {sorted(found)}")
            if found[a] < amount:
                return
            for account, change in (a, -amount), (b, amount):
                changed = session.execute(
                    f"UPDATE bank SET balance = balance + %s, moves = moves + 1 WHERE {column} = %s",
                    (change, key(account)),
                ).rowcount
                if changed != 1:
                    self.differ(f"an UPDATE by {column} changed {changed} rows of account {account}")

        outcome, value = session.tx(level, transfer)
        self.run.count(self.name, "transfer", outcome, value)

    def read(self, session, rng):
        level = rng.choice(LEVELS)
        ways = ["seq"] + [rng.choice(BY_INDEX) for _ in range(3)]
        rng.shuffle(ways)
        if level == READ_COMMITTED:
            del ways[1:]
        # a snapshot that is old by its end, but for that of another statement
        rest = rng.choice((0, 0, 0.3)) if len(ways) > 1 else 0
        self.one_snapshot(session, level, lambda session: self.sums(session, ways, rest))

    def sums(self, session, ways, rest=0):
        for way in ways:
            session.way(way)
            time.sleep(rest)
            for where in "id >= 0", "name >= 'account'", "balance >= -1000000":
                # the second one needs no more than the index
                for more in ", min(moves)", "":
                    ((count, total, *_),) = session.rows(f"SELECT count(*), sum(balance) {more} FROM bank WHERE {where}")
                    if (count, total) != (ACCOUNTS, ACCOUNTS * EACH):
                        self.differ(f"by {way}, {where}: {count} accounts have {total}")

    def calm(self, session):
        def check(session):
            self.sums(session, ("seq",) + BY_INDEX)
            for where in "id >= 0", "name >= 'account'", "balance >= -1000000":
                self.alike(session, f"SELECT id, name, balance, moves FROM bank WHERE {where} ORDER BY id")

        self.calmly(session, check)

    def plants(self):
        return {
            "half a transfer": lambda session: session.execute("UPDATE bank SET balance = balance + 1 WHERE id = 7"),
            "an account is gone": lambda session: session.execute("DELETE FROM bank WHERE id = 7"),
            "an index without new entries": self.lying_index("bank_balance"),
        }
