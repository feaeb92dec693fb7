"""A run: clients under load, one fault after the other, and the answers of both servers compared."""

import collections
import json
import os
import random
import sys
import threading
import time
import traceback

import psycopg

from . import nemeses
from .cluster import Broken, Cluster
from .session import EXPECTED, Difference, Session

CLIENTS = {"primary": 3, "standby": 1}      # of each workload


class Worker(threading.Thread):
    """A client of one workload.  It rests, without a connection, while the run says so."""

    def __init__(self, run, workload, role, number):
        super().__init__(daemon=True, name=f"{workload.name} {role} {number}")
        self.run_ = run
        self.workload = workload
        self.role = role
        self.rng = random.Random(f"{run.seed} {self.name}")
        self.resting = threading.Event()

    def run(self):
        session = Session(self.run_, self.role, self.name)
        while not self.run_.ended:
            if self.run_.rest.is_set():
                session.close()
                self.resting.set()
                self.run_.go.wait(1)
                continue
            self.resting.clear()
            try:
                if self.role == "standby" or self.rng.random() * (self.workload.writes + 1) > self.workload.writes:
                    self.workload.read(session, self.rng)
                else:
                    self.workload.write(session, self.rng)
            except Difference as difference:
                self.run_.differs(self.name, difference)
            except Exception:
                self.run_.differs(self.name, traceback.format_exc())
            if session.conn is None:
                time.sleep(0.1)
            elif self.role == "standby":
                time.sleep(0.05)
        session.close()
        self.resting.set()


class Run:
    """Everything of one run."""

    def __init__(self, env, seed, workloads):
        self.env = env
        self.seed = seed
        self.cluster = Cluster(env)
        self.lock = threading.Lock()
        self.expected = EXPECTED
        self.outcomes = collections.Counter()   # (workload, operation, outcome)
        self.refusals = collections.Counter()   # SQLSTATE
        self.faults = collections.Counter()     # name -> how often
        self.rows = 0
        self.done = 0           # cycles
        self.broken_off = False
        self.scans = collections.Counter()      # (role, index) -> scans
        self.checked = 0
        self.differences = []
        self.history = collections.deque(maxlen=50000)
        self.ended = False
        self.rest = threading.Event()
        self.go = threading.Event()
        self.now = "start"
        self.workloads = [workload(self) for workload in workloads]
        self.workers = []
        self.definitions = {}       # of indexes, as they were made

    # ---- what happened ----

    def say(self, text):
        print(f"# {time.strftime('%H:%M:%S')} {text}", flush=True)

    def count(self, workload, operation, outcome, value):
        with self.lock:
            self.outcomes[workload, operation, outcome] += 1
            if outcome not in ("ok", "taken"):
                self.refusals[value] += 1
            self.history.append((time.time(), threading.current_thread().name, self.cluster.generation,
                                 workload, operation, outcome, str(value)[:300]))

    def verified(self, rows):
        with self.lock:
            self.rows += rows

    def differs(self, where, what):
        with self.lock:
            self.differences.append((where, str(what)))
            self.history.append((time.time(), where, self.cluster.generation, "DIFFERENCE", str(what)))
            many = len(self.differences)
        if many <= 20:
            self.say(f"DIFFERENCE, during {self.now}: {where}: {what}")

    def breaks_off(self, why):
        """The run's own programs did not get on: no difference, and no success."""
        self.broken_off = True
        self.say(f"BROKEN OFF, during {self.now}: {why}")

    def fault_happened(self):
        self.faults[self.now] += 1

    # ---- the load ----

    def engine(self):
        """The WITH clauses of all engines, one after the other, from a random one on."""
        engines = list(self.env.engines)
        at = random.Random(self.seed).randrange(len(engines))

        def next_one():
            nonlocal at
            structure, sync = engines[at % len(engines)].split("-")
            at += 1
            return f"WITH (structure = {structure}, sync = {sync})"

        return next_one

    def begin(self):
        engine = self.engine()
        self.cluster.make([statement for workload in self.workloads for statement in workload.schema(engine)])
        self.definitions = {
            index: self.cluster.primary.value("SELECT pg_get_indexdef(%s::regclass)", [index])
            for workload in self.workloads for index in workload.indexes
        }
        self.pause_flag(False)
        for workload in self.workloads:
            for role, number in CLIENTS.items():
                self.workers += [Worker(self, workload, role, i) for i in range(number)]
        for worker in self.workers:
            worker.start()

    def pause_flag(self, rest):
        if rest:
            self.go.clear()
            self.rest.set()
        else:
            self.rest.clear()
            self.go.set()

    def pause(self, timeout=120):
        self.pause_flag(True)
        end = time.monotonic() + timeout
        for worker in self.workers:
            if not worker.resting.wait(max(0.1, end - time.monotonic())):
                raise Broken(f"client {worker.name} gets no answer")
        self.cluster.at_rest()
        self.cluster.end_prepared(self.cluster.primary)
        left = self.cluster.primary.sql("SELECT gid, prepared::text, now()::text FROM pg_prepared_xacts")
        if left:
            raise Broken(f"prepared transactions are left at rest: {left}")

    def resume(self):
        for worker in self.workers:
            worker.resting.clear()
        self.pause_flag(False)

    # ---- the comparison at rest ----

    def calm(self):
        """Everything is compared on both servers, and artidx checks its indexes.  Returns for how
        long the clients were waited for."""
        began = time.monotonic()
        self.pause()
        rest = time.monotonic() - began
        self.count_scans()
        for role in "primary", "standby":
            if role == "standby":
                self.cluster.caught_up()
            session = Session(self, role, f"{role} at rest")
            for workload in self.workloads:
                try:
                    workload.calm(session)
                except Difference as difference:
                    self.differs(session.name, difference)
            session.close()
            self.check(role)
        session = Session(self, "primary", "tidy")
        for workload in self.workloads:
            workload.tidy(session)
        session.close()
        self.resume()
        return rest

    def check(self, role):
        node = self.cluster.primary if role == "primary" else self.cluster.standby
        # a server tries again ten seconds after its memory was full, which artidx_wait does not wait for
        end = time.monotonic() + 60
        while not node.value("SELECT artidx_wait('60 s')") and time.monotonic() < end:
            time.sleep(0.2)
        states = node.sql("SELECT indexrelname, state, reason FROM artidx_indexes WHERE state <> 'ready'")
        if states:
            self.differs(role, f"after a minute at rest these are not ready: {states}")
            return
        for workload in self.workloads:
            for index in workload.indexes:
                try:
                    self.checked += node.value("SELECT entries FROM artidx_check(%s::regclass, true)", [index])
                except psycopg.Error as error:
                    self.differs(role, f"artidx_check of {index}: {error.sqlstate} {error}")

    def count_scans(self):
        """Each crash forgets them, so they are asked for in each cycle."""
        for role, node in ("primary", self.cluster.primary), ("standby", self.cluster.standby):
            for index, scans in node.sql("SELECT indexrelname, idx_scan FROM pg_stat_user_indexes"):
                self.scans[role, index] += scans

    def unused(self):
        """Indexes that nobody has scanned, on either server: their answers say nothing of artidx."""
        return [f"{index} ({role})" for w in self.workloads for index in w.indexes for role in ("primary", "standby")
                if not self.scans[role, index]]

    # ---- cycles ----

    def cycles(self, seconds, names):
        """Until the time is over or something differs: a fault, the mending, the comparison."""
        rng = random.Random(self.seed)
        end = time.monotonic() + seconds
        deck = []
        while time.monotonic() < end and not self.differences:
            # each once before any again
            if not deck:
                deck = rng.sample(names, len(names))
            self.now = deck.pop()
            function, more = nemeses.ALL[self.now]
            numbers = random.Random(f"{self.seed} {self.done}")
            began = time.monotonic()
            self.expected = EXPECTED + more
            before = self.faults[self.now]
            time.sleep(numbers.uniform(0.2, 1.5))
            function(self, numbers, numbers.uniform(1, 4))
            broken = time.monotonic() - began
            self.cluster.whole()
            whole = time.monotonic() - began
            time.sleep(numbers.uniform(0.2, 1))
            rest = self.calm()
            self.expected = EXPECTED
            self.done += 1
            self.say(f"cycle {self.done}: {self.now}, {self.faults[self.now] - before} faults in {broken:.1f} s,"
                     f" whole after {whole:.1f} s, at rest {rest:.1f} s later, compared after"
                     f" {time.monotonic() - began:.1f} s; {self.rows} rows so far")

    def finish(self):
        self.ended = True
        self.go.set()
        for worker in self.workers:
            worker.join(20)
        for node in self.cluster.nodes:
            try:
                for line in node.bad_lines():
                    self.differs(f"log of {node.name}", line)
            except FileNotFoundError:
                pass

    def keep(self):
        """What is needed to find a cause: the history, and the servers' logs."""
        os.makedirs(self.env.results, exist_ok=True)
        with open(f"{self.env.results}/history-{self.seed}.jsonl", "w") as out:
            for line in self.history:
                print(json.dumps(line), file=out)
        with open(f"{self.env.results}/differences-{self.seed}.txt", "w") as out:
            for where, what in self.differences:
                print(f"{where}: {what}\n", file=out)
        for node in self.cluster.nodes:
            if os.path.exists(node.log):
                with open(node.log, errors="replace") as log, \
                        open(f"{self.env.results}/{node.name}-{self.seed}.log", "w") as out:
                    out.write(log.read())
        self.say(f"kept: {self.env.results}")


def evidence(run, seconds):
    """Label and value, one a line."""
    outcomes = collections.Counter()
    for (_, _, outcome), number in run.outcomes.items():
        outcomes[outcome] += number
    yield "seed", run.seed
    yield "seconds of load and faults", round(seconds)
    yield "cycles", run.done
    for name, number in sorted(run.faults.items()):
        yield f"faults, {name}", number
    for outcome, number in sorted(outcomes.items()):
        yield f"operations, {outcome}", number
    yield "rows verified", run.rows
    yield "entries checked", run.checked
    yield "scans of art indexes", sum(run.scans.values())
    yield "differences", len(run.differences)
    if run.broken_off:
        yield "broken off during", run.now


def report(run, seconds):
    table = collections.defaultdict(collections.Counter)
    for (workload, operation, outcome), number in run.outcomes.items():
        table[workload, operation][outcome] += number
    print(f"{'workload':10} {'operation':21} {'ok':>9} {'taken':>7} {'failed':>8} {'unknown':>8}")
    for (workload, operation), outcomes in sorted(table.items()):
        print(f"{workload:10} {operation:21} {outcomes['ok']:9} {outcomes['taken']:7} {outcomes['failed']:8}"
              f" {outcomes['unknown']:8}")
    print("refused by: " + ", ".join(f"{code} {n}" for code, n in run.refusals.most_common()))
    for label, value in evidence(run, seconds):
        print(f"{label}\t{value}")
    sys.stdout.flush()
