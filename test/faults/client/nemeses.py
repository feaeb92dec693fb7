"""The faults.  Each is a function of the run, its random numbers and its length in seconds, and
returns when what it broke is in order again, but for what the servers mend by themselves."""

import copy
import os
import random
import signal
import threading
import time
import types

import psycopg

from .cluster import Broken

CLIENT = r"^postgres: faults postgres .*\("
WORKER = r"^postgres: artidx "
STRUCTURES = ("art", "btree", "hydra")
ALL = {}


def nemesis(name, expected=()):
    """Under a name, with SQLSTATEs that clients may get because of it."""

    def register(function):
        ALL[name] = (function, tuple(expected))
        return function

    return register


def send(pids, number):
    hit = 0
    for pid in pids:
        try:
            os.kill(pid, number)
            hit += 1
        except ProcessLookupError:
            pass
    return hit


def some(rng, things, most):
    things = list(things)
    return rng.sample(things, min(len(things), rng.randint(1, most)))


def until(seconds):
    """Yields again and again until the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


@nemesis("none")
def nothing(run, rng, seconds):
    time.sleep(seconds)


def give_work(run, rng, node):
    """The builders make indexes of another structure."""
    for index in rng.choice(run.workloads).indexes:
        node.sql(f"ALTER INDEX {index} SET (structure = {rng.choice(STRUCTURES)}, sync = auto)")


# ---- processes that die ----


def kill_one(run, rng, node, title, seconds):
    """kill -9 of a process with that title, as soon as there is one; the server recovers, or, a
    standby without its startup process, ends and is started."""
    postmaster = node.pid()
    for _ in until(seconds + 5):
        victims = node.processes(title)
        victim = rng.choice(victims) if victims else None
        if victim and send([victim], signal.SIGKILL):
            run.fault_happened()
            # the postmaster may be slow to notice, and would crash a server that is thought to be back
            for _ in until(60):
                if not os.path.exists(f"/proc/{victim}"):
                    break
                time.sleep(0.01)
            break
        time.sleep(0.01)
    time.sleep(seconds)
    for _ in until(120):
        if not os.path.exists(f"/proc/{postmaster}"):
            node.start()
        try:
            node.sql("SELECT 1")
            return
        except psycopg.Error:
            time.sleep(0.1)
    raise Broken(f"after kill -9 of {title} the server {node.name} does not come back")


@nemesis("kill-backend")
def kill_backend(run, rng, seconds):
    kill_one(run, rng, run.cluster.primary, CLIENT, seconds / 2)


@nemesis("kill-backends")
def kill_backends(run, rng, seconds):
    """Three in a row: the crash after a crash keeps no index in memory."""
    for _ in range(3):
        kill_one(run, rng, run.cluster.primary, CLIENT, seconds / 4)


@nemesis("kill-worker")
def kill_worker(run, rng, seconds):
    """One of artidx's own processes: launcher, builder."""
    node = run.cluster.primary
    if rng.random() < 0.5:
        give_work(run, rng, node)
    kill_one(run, rng, node, WORKER, seconds / 2)


@nemesis("kill-server-process")
def kill_server_process(run, rng, seconds):
    kill_one(run, rng, run.cluster.primary, r"checkpointer|walwriter|background writer|autovacuum|walsender", seconds / 2)


@nemesis("kill-postmaster")
def kill_postmaster(run, rng, seconds):
    node = run.cluster.primary
    node.kill_postmaster()
    run.fault_happened()
    time.sleep(seconds / 4)
    node.start()


@nemesis("restart-immediate")
def restart_immediate(run, rng, seconds):
    node = run.cluster.primary
    node.stop("immediate")
    run.fault_happened()
    time.sleep(seconds / 4)
    node.start()


@nemesis("restart-fast")
def restart_fast(run, rng, seconds):
    """The indexes are saved to a file and loaded."""
    node = run.cluster.primary
    node.stop("fast")
    run.fault_happened()
    node.start()


# ---- processes that stand still ----


def stop_some(run, rng, node, title, most, seconds):
    victims = some(rng, node.processes(title), most) if node.processes(title) else []
    stopped = send(victims, signal.SIGSTOP)
    try:
        if stopped:
            run.fault_happened()
        time.sleep(seconds)
    finally:
        send(victims, signal.SIGCONT)


@nemesis("stop-backends")
def stop_backends(run, rng, seconds):
    for _ in until(seconds):
        stop_some(run, rng, run.cluster.primary, CLIENT, 3, rng.uniform(0.05, seconds / 2))


@nemesis("stop-workers")
def stop_workers(run, rng, seconds):
    give_work(run, rng, run.cluster.primary)
    for _ in until(seconds):
        stop_some(run, rng, run.cluster.primary, WORKER, 3, rng.uniform(0.1, seconds / 2))


@nemesis("stop-checkpointer")
def stop_checkpointer(run, rng, seconds):
    title = rng.choice(("checkpointer", "walwriter", "background writer"))
    stop_some(run, rng, run.cluster.primary, title, 1, seconds)


# ---- the standby ----


@nemesis("standby-kill")
def standby_kill(run, rng, seconds):
    title = rng.choice((WORKER + "follower", WORKER, "startup", CLIENT, "walreceiver"))
    kill_one(run, rng, run.cluster.standby, title, seconds / 2)


@nemesis("standby-restart")
def standby_restart(run, rng, seconds):
    node = run.cluster.standby
    node.stop(rng.choice(("immediate", "fast")))
    run.fault_happened()
    time.sleep(seconds / 4)
    node.start()


@nemesis("standby-stop")
def standby_stop(run, rng, seconds):
    for _ in until(seconds):
        title = rng.choice((WORKER, "startup", CLIENT, "walreceiver", "checkpointer"))
        stop_some(run, rng, run.cluster.standby, title, 2, rng.uniform(0.1, seconds / 2))


# ---- failover ----


@nemesis("failover")
def failover(run, rng, seconds):
    """The primary dies, the standby takes over, and the old primary comes back as its standby."""
    old = run.cluster.primary
    if rng.random() < 0.5:
        old.kill_postmaster()
    else:
        old.stop("immediate")
    run.fault_happened()
    run.cluster.failover()
    time.sleep(seconds)
    run.cluster.rebuild(rng.choice(("rewind", "backup")))


@nemesis("failover-isolated")
def failover_isolated(run, rng, seconds):
    """The primary is cut off and goes on; what it commits alone, it has told nobody."""
    old = run.cluster.primary
    links = (old.name, "ab")
    run.cluster.cut(links, True)
    try:
        run.fault_happened()
        time.sleep(seconds / 2)
        run.cluster.failover()
        time.sleep(seconds / 2)
        old.stop("immediate")
    finally:
        run.cluster.cut(links, False)
    run.cluster.rebuild(rng.choice(("rewind", "backup")))


# ---- the network ----


@nemesis("network-cut")
def network_cut(run, rng, seconds):
    for _ in until(seconds):
        links = some(rng, ("a", "b", "ab"), 3)
        run.cluster.cut(links, True)
        try:
            run.fault_happened()
            time.sleep(rng.uniform(0.2, seconds))
        finally:
            run.cluster.cut(links, False)
        time.sleep(rng.uniform(0, 1))


# ---- what is full ----


@nemesis("disk-full", expected=("53100",))
def disk_full(run, rng, seconds):
    """The file system with the table of rising keys has no room for another page."""
    filler = f"{run.cluster.primary.small}/filler"
    try:
        with open(filler, "wb") as out:
            for _ in until(seconds):
                # what a VACUUM or a checkpoint gives back is taken, too
                try:
                    while True:
                        out.write(b"\0" * 8192)
                        out.flush()
                except OSError:
                    run.fault_happened()
                time.sleep(0.1)
    finally:
        os.unlink(filler)


@nemesis("memory-full", expected=("53200",))
def memory_full(run, rng, seconds):
    """Other indexes take all of artidx.memory: unique ones refuse rows, others are sealed."""
    node = run.cluster.primary
    node.sql("CREATE TABLE filler (k text COLLATE \"C\")")
    node.sql("CREATE UNIQUE INDEX filler_k ON filler USING art (k)")
    full = None
    try:
        while not full or time.monotonic() < full + seconds:
            try:
                node.sql("INSERT INTO filler SELECT gen_random_uuid()::text || repeat('x', 300) FROM generate_series(1, 2000)")
            except psycopg.errors.OutOfMemory:
                full = full or time.monotonic()
                run.fault_happened()
                time.sleep(0.2)
    finally:
        node.sql("DROP TABLE filler")


# ---- the clock ----


@nemesis("clock-jump")
def clock_jump(run, rng, seconds):
    """The primary is started under libfaketime, and its clock jumps, also backward."""
    node = run.cluster.primary
    file = f"{run.cluster.env.work}/clock"

    def set_clock(offset):
        with open(file + ".new", "w") as out:
            out.write(f"{offset:+d}")
        os.rename(file + ".new", file)

    set_clock(0)
    node.stop("fast")
    node.variables = {
        "LD_PRELOAD": run.cluster.env.faketime, "FAKETIME_TIMESTAMP_FILE": file,
        "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    try:
        node.start()
        before = node.value("SELECT extract(epoch FROM clock_timestamp())::float8")
        for _ in until(seconds + 1):
            offset = rng.choice((-86400, -3600, -30, -1, 1, 30, 3600, 86400))
            set_clock(offset)
            if abs(node.value("SELECT extract(epoch FROM clock_timestamp())::float8") - before) > 0.5:
                run.fault_happened()
            time.sleep(rng.uniform(0.1, 1))
        # with the clock behind, a crash as well
        if rng.random() < 0.5:
            kill_one(run, rng, node, CLIENT, 1)
    finally:
        node.variables = {}
    node.stop("fast")
    node.start()


# ---- what changes indexes ----


@nemesis("ddl", expected=("42P01", "42704", "0A000"))
def ddl(run, rng, seconds):
    """Indexes are made again, dropped and made, and get other structures, beside all clients."""
    node = run.cluster.primary
    for _ in until(seconds):
        workload = rng.choice(run.workloads)
        index = rng.choice(workload.indexes)
        definition = run.definitions[index]
        table = node.value("SELECT indrelid::regclass::text FROM pg_index WHERE indexrelid = %s::regclass", [index])
        what = rng.choice(("reindex", "concurrently", "concurrently", "another", "again", "structure", "table", "unload"))
        steps = {
            "reindex": [f"REINDEX INDEX {index}"],
            "concurrently": [f"REINDEX INDEX CONCURRENTLY {index}"],
            # there is always one that keeps keys unique
            "another": [
                definition.replace(f"INDEX {index} ", "INDEX CONCURRENTLY other "),
                f"DROP INDEX CONCURRENTLY {index}", f"ALTER INDEX other RENAME TO {index}",
            ],
            "again": ["BEGIN", f"DROP INDEX {index}", definition, rng.choice(("COMMIT", "COMMIT", "ROLLBACK"))],
            "structure": [f"ALTER INDEX {index} SET (structure = {rng.choice(STRUCTURES)}, sync = auto)"],
            "unload": [f"SELECT artidx_unload('{index}')", "SELECT pg_sleep(0.1)", f"SELECT artidx_build('{index}')"],
            "table": [f"VACUUM FULL {table}"],
        }[what]
        try:
            node.sql("SET lock_timeout = '5s'")
            for step in steps:
                node.sql(step)
            run.fault_happened()
        except (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable) as error:
            run.say(f"{what} of {index}: {error}")
            mend(run, node)
    node.disconnect()


def mend(run, node):
    """Indexes that DDL left invalid, under another name, or not at all."""
    node.disconnect()
    run.cluster.end_prepared(node, 1)
    for (left,) in node.sql("SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"):
        node.sql(f"DROP INDEX IF EXISTS {left}")
    # "other" may be the only one that keeps keys unique
    for index, definition in run.definitions.items():
        node.sql(definition.replace(f"INDEX {index} ", f"INDEX IF NOT EXISTS {index} "))
    node.sql("DROP INDEX IF EXISTS other")


@nemesis("vacuum")
def vacuum(run, rng, seconds):
    node = run.cluster.primary
    for _ in until(seconds):
        what = rng.choice(("(INDEX_CLEANUP ON)", "(FREEZE)", "(PARALLEL 2, INDEX_CLEANUP ON)", "(TRUNCATE OFF)"))
        table = rng.choice([t for (t,) in node.sql("SELECT relname FROM pg_stat_user_tables")])
        node.sql(f"VACUUM {what} {table}")
        run.fault_happened()


@nemesis("vacuum-killed")
def vacuum_killed(run, rng, seconds):
    """VACUUM of everything, and the server is killed in the middle."""
    node = run.cluster.primary
    vacuum(run, rng, seconds / 3)
    kill_one(run, rng, node, rng.choice((CLIENT, r"vacuum|VACUUM|autovacuum")), seconds / 3)


@nemesis("two-at-once", expected=ALL["ddl"][1] + ALL["memory-full"][1])
def two_at_once(run, rng, seconds):
    """DDL, VACUUM or a full memory, and in the middle a process dies or stands still, or a failover."""
    beside = rng.choice((ddl, vacuum, memory_full))
    fault = rng.choice((kill_backend, kill_worker, kill_postmaster, restart_immediate, restart_fast,
                        failover, stop_backends, stop_workers))
    numbers = random.Random(rng.random())
    node = copy.copy(run.cluster.primary)
    node.conn = None
    # what the other thread has: its own connection
    other = types.SimpleNamespace(
        cluster=types.SimpleNamespace(primary=node, end_prepared=run.cluster.end_prepared),
        workloads=run.workloads, definitions=run.definitions,
        fault_happened=lambda: None, say=run.say,
    )

    def work():
        try:
            beside(other, numbers, seconds * 2)
        except psycopg.Error:
            pass        # its server is gone

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    time.sleep(rng.uniform(0, seconds))
    fault(run, rng, seconds / 2)
    thread.join(120)
    if thread.is_alive():
        raise Broken(f"{beside.__name__} beside {fault.__name__} does not end")
    node.disconnect()
    run.cluster.whole()
    run.cluster.primary.sql("DROP TABLE IF EXISTS filler")
    mend(run, run.cluster.primary)


def available(env):
    """The names of those that this machine lets us do, and why not the others."""
    names, lacking = list(ALL), {}
    if not env.namespaces:
        for name in "network-cut", "failover-isolated", "disk-full":
            lacking[name] = "only root has network namespaces and mounts"
    if not env.faketime:
        lacking["clock-jump"] = "there is no libfaketime"
    return [name for name in names if name not in lacking], lacking
