"""Two servers, a primary and its synchronous standby, each in a network namespace of its own."""

import math
import os
import re
import shutil
import signal
import subprocess
import time

import psycopg

CONF = """
shared_preload_libraries = 'artidx'
artidx.memory = '{memory}'
listen_addresses = '*'
port = {port}
unix_socket_directories = '{sockets}'
hba_file = '{hba}'
max_connections = 80
max_prepared_transactions = 40
shared_buffers = '32MB'
fsync = off
jit = off
autovacuum_naptime = 2
checkpoint_timeout = 30
checkpoint_completion_target = 0.1
wal_keep_size = '256MB'
wal_log_hints = on
max_standby_streaming_delay = '2s'
wal_receiver_timeout = '4s'
wal_sender_timeout = '4s'
wal_retrieve_retry_interval = '200ms'
tcp_keepalives_idle = 2
tcp_keepalives_interval = 1
tcp_keepalives_count = 3
restart_after_crash = on
log_error_verbosity = terse
log_min_error_statement = panic
log_line_prefix = '%m [%p] %e %b '
primary_conninfo = 'host={peer} port={peer_port} user=faults application_name=standby connect_timeout=3'
synchronous_standby_names = '{sync}'
synchronous_commit = remote_apply
"""

# of a log: nobody has killed that one, or an index was wrong
BAD_LOG = re.compile(
    r"PANIC|TRAP:|terminated by signal (?!9:)|exited with exit code (?![012]\b)|is corrupted|differs from its table"
)


def stacks(rows):
    """What the processes, whose ids begin the rows, are doing.  Nothing where there is no gdb."""
    if not shutil.which("gdb"):
        return ""
    return "".join("\n" + subprocess.run(["gdb", "-p", str(row[0]), "-batch", "-ex", "bt"], capture_output=True,
                                         text=True, timeout=60).stdout for row in rows)


class Broken(Exception):
    """The servers did not come back from a fault."""


class Node:
    """One server."""

    def __init__(self, env, name, number):
        self.env = env
        self.name = name
        self.data = f"{env.work}/{name}"
        self.namespace = env.namespaces.get(name)
        self.small = f"{env.work}/small-{name}" if env.namespaces else None
        self.port = 5432 if self.namespace else env.port + number
        self.address = env.addresses[name] if self.namespace else "127.0.0.1"
        self.peer = None
        self.sync = ""
        self.variables = {}     # of its environment
        self.log = f"{self.data}.log"
        self.conn = None

    def program_of_peer(self, name, *args, **variables):
        """One that asks the other server.  A link that was cut may take a while to have its route again."""
        end = time.monotonic() + 60
        while True:
            done = self.program(name, *args, check=False, **variables)
            if not done.returncode:
                return
            if "connection to server" not in done.stdout or time.monotonic() > end:
                raise Broken(f"{name}: {done.stdout[-2000:]}")
            time.sleep(0.2)

    def program(self, name, *args, check=True, timeout=120, **variables):
        """A program of PostgreSQL's, as its user and in its namespace."""
        command = []
        if self.namespace:
            command += ["nsenter", f"--net=/run/netns/{self.namespace}"]
        if os.getuid() == 0:
            command += ["runuser", "-u", self.env.user, "--"]
        command += ["env", *(f"{k}={v}" for k, v in (self.variables | variables).items()), f"{self.env.bin}/{name}", *args]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=timeout, cwd=self.env.work,
        )
        if check and done.returncode:
            raise Broken(f"{name} {' '.join(args)}: {done.stdout[-2000:]}")
        return done

    def write_conf(self):
        """Outside of the data directory, for pg_rewind copies that of its source."""
        with open(f"{self.data}.conf", "w") as out:
            out.write(CONF.format(
                memory=self.env.memory, port=self.port, sockets=f"{self.env.work}/tmp/{self.name}",
                hba=f"{self.env.work}/hba.conf", peer=self.peer_address(), peer_port=self.peer.port, sync=self.sync,
            ))
            out.write(self.env.more_conf)

    def peer_address(self):
        return self.env.addresses[f"{self.peer.name} for {self.name}"] if self.namespace else "127.0.0.1"

    def begin_start(self):
        self.write_conf()
        self.program("pg_ctl", "-D", self.data, "-l", self.log, "-W", "-o", f"-c config_file={self.data}.conf", "start")

    def start(self, timeout=120):
        self.begin_start()
        self.wait_up(timeout)

    def stop(self, mode):
        self.disconnect()
        self.program("pg_ctl", "-D", self.data, "-m", mode, "-w", "-t", "90", "stop", check=False)

    def wait_up(self, timeout=120):
        end = time.monotonic() + timeout
        while True:
            try:
                return self.sql("SELECT 1")
            except psycopg.Error as error:
                if time.monotonic() > end:
                    raise Broken(f"server {self.name} does not come up: {error}") from error
                time.sleep(0.1)

    def sql(self, text, args=None):
        """By a socket, which no cut of the network reaches.  One try."""
        if self.conn is None or self.conn.closed:
            self.conn = psycopg.connect(
                host=f"{self.env.work}/tmp/{self.name}", port=self.port, user="faults", dbname="postgres",
                autocommit=True, connect_timeout=5, application_name="faults-control",
            )
        try:
            cursor = self.conn.execute(text, args)
            return cursor.fetchall() if cursor.description else []
        except psycopg.OperationalError:
            self.disconnect()
            raise

    def value(self, text, args=None):
        return self.sql(text, args)[0][0]

    def disconnect(self):
        if self.conn is not None:
            self.conn.close()
            self.conn = None

    def pid(self):
        try:
            with open(f"{self.data}/postmaster.pid") as lines:
                return int(lines.readline())
        except (FileNotFoundError, ValueError):
            return None

    def processes(self, title):
        """Pids of its processes whose title matches."""
        try:
            found = []
            for pid in open(f"/proc/{self.pid()}/task/{self.pid()}/children").read().split():
                with open(f"/proc/{pid}/cmdline") as line:
                    if re.search(title, line.read()):
                        found.append(int(pid))
            return found
        except (FileNotFoundError, ProcessLookupError):
            return []

    def kill_postmaster(self):
        """kill -9, and wait until it is gone (no zombie, which has its lock file), and all that it has started."""
        pid = self.pid()
        processes = [pid, *self.processes("")]
        self.disconnect()
        os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 60
        while any(os.path.exists(f"/proc/{process}") for process in processes):
            if time.monotonic() > end:
                raise Broken(f"the postmaster of {self.name}, or what it has started, does not end")
            time.sleep(0.05)

    def bad_lines(self):
        with open(self.log, errors="replace") as lines:
            return [line.strip() for line in lines if BAD_LOG.search(line)]


class Cluster:
    """The primary, the standby, and who is which."""

    def __init__(self, env):
        self.env = env
        self.small = bool(env.namespaces)
        a, b = Node(env, "a", 0), Node(env, "b", 1)
        a.peer, b.peer = b, a
        self.nodes = (a, b)
        self.roles = (a, b, 0)  # primary, standby, and how many promotions there were

    @property
    def primary(self):
        return self.roles[0]

    @property
    def standby(self):
        return self.roles[1]

    @property
    def generation(self):
        return self.roles[2]

    # ---- beginning ----

    def make(self, schema):
        env = self.env
        with open(f"{env.work}/hba.conf", "w") as out:
            out.write("local all all trust\nhost all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n")
        for node in self.nodes:
            for directory in filter(None, (f"{env.work}/tmp/{node.name}", node.small and f"{node.small}/space")):
                os.makedirs(directory, exist_ok=True)
                shutil.chown(directory, env.user)
        primary = self.primary
        primary.program("initdb", "-D", primary.data, "-U", "faults", "-A", "trust", "-N", "--no-locale", "-E", "UTF8")
        primary.start()
        primary.sql("CREATE EXTENSION artidx")
        if self.small:
            primary.sql(f"CREATE TABLESPACE small LOCATION '{primary.small}/space'")
        for statement in schema:
            primary.sql(statement)
        primary.sql("ANALYZE")
        self.copy(primary, self.standby)
        self.standby.start()
        self.whole()

    def copy(self, source, target):
        """The target becomes a standby, by a base backup."""
        shutil.rmtree(target.data, ignore_errors=True)
        args = ["-D", target.data, "-h", target.peer_address(), "-p", str(source.port), "-U", "faults",
                "-c", "fast", "-N", "-X", "stream", "-s", "1"]
        if self.small:
            # the place in the file system of the source, by what it says of itself
            space = source.value("SELECT pg_tablespace_location(oid) FROM pg_tablespace WHERE spcname = 'small'")
            for thing in os.listdir(f"{target.small}/space"):
                shutil.rmtree(f"{target.small}/space/{thing}")
            args.append(f"--tablespace-mapping={space}={target.small}/space")
        # a busy machine is not what is tried here
        target.program_of_peer("pg_basebackup", *args, PGOPTIONS="-c wal_sender_timeout=60s")
        self.follow(target)

    def follow(self, node):
        signal_file = f"{node.data}/standby.signal"
        open(signal_file, "w").close()
        shutil.chown(signal_file, self.env.user)

    # ---- health ----

    def set_sync(self, sync):
        for node in self.nodes:
            node.sync = sync
            node.write_conf()
        self.primary.sql("SELECT pg_reload_conf()")

    def whole(self, timeout=180):
        """Waits until both are up, the standby is synchronous, and has all there was."""
        end = time.monotonic() + timeout
        why = None
        while time.monotonic() < end:
            try:
                if self.primary.sync != "*":
                    self.set_sync("*")
                target = self.primary.value("SELECT pg_current_wal_flush_lsn()::text")
                rows = self.primary.sql(
                    "SELECT replay_lsn >= %s::pg_lsn FROM pg_stat_replication WHERE sync_state = 'sync'", [target])
                if rows == [(True,)] and self.standby.value("SELECT pg_is_in_recovery()"):
                    return
                why = f"replication is {rows}"
            except psycopg.Error as error:
                why = str(error)
            time.sleep(0.1)
        raise Broken(f"after {timeout} s the servers are not whole: {why}")

    def caught_up(self, timeout=120):
        """The standby has replayed all there is now on the primary, which rests."""
        target = self.primary.value("SELECT pg_current_wal_insert_lsn()::text")
        end = time.monotonic() + timeout
        while not self.standby.value("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [target]):
            if time.monotonic() > end:
                raise Broken(f"the standby does not get to {target}")
            time.sleep(0.05)

    def end_prepared(self, node, age=-math.inf):
        """What a client has prepared, and could not commit, so many seconds ago.  At rest any: a clock that was
        ahead may have said when."""
        for (name,) in node.sql("SELECT gid FROM pg_prepared_xacts WHERE extract(epoch FROM now() - prepared) >= %s", [age]):
            try:
                node.sql(f"COMMIT PREPARED '{name}'")
            except (psycopg.errors.ObjectNotInPrerequisiteState, psycopg.errors.UndefinedObject):
                pass        # its client does so just now

    def at_rest(self, timeout=60):
        """Waits until no statement of a client is left anywhere, which could still commit.  A session
        that has had none is left by a client that gave up while it connected."""
        mine = "application_name = 'faults-client' AND query <> ''"
        for node in self.nodes:
            end = time.monotonic() + timeout
            while node.value(f"SELECT count(*) FROM pg_stat_activity WHERE {mine}"):
                if time.monotonic() > end:
                    left = node.sql("SELECT pid, state, wait_event_type, wait_event, query_start::text, query "
                                    f"FROM pg_stat_activity WHERE {mine}")
                    raise Broken(f"clients of server {node.name} do not end: {left}{stacks(left)}")
                time.sleep(0.05)

    # ---- faults of both ----

    def failover(self):
        """The standby becomes the primary.  The old one must not answer clients any more."""
        new, old = self.standby, self.primary
        new.sync = old.sync = ""
        new.write_conf()
        new.program("pg_ctl", "-D", new.data, "-w", "-t", "90", "promote")
        # a new generation: sessions of the old primary are not used again
        self.roles = (new, old, self.generation + 1)

    def rebuild(self, way):
        """The old primary, which is down, becomes a standby again: by rewind or backup."""
        old = self.standby
        if way == "rewind":
            source = f"host={old.peer_address()} port={self.primary.port} user=faults dbname=postgres"
            self.primary.sql("CHECKPOINT")
            old.program_of_peer("pg_rewind", "-D", old.data, "--source-server", source, "--no-sync",
                                f"--config-file={old.data}.conf")
            self.follow(old)
        else:
            self.copy(self.primary, old)
        old.start()

    def cut(self, links, down):
        """Links: "a" and "b" to the clients, "ab" between the servers."""
        for link in links:
            namespace = self.env.namespaces[link[0]]
            device = "peer" if link == "ab" else "clients"
            subprocess.run(["ip", "-n", namespace, "link", "set", device, "down" if down else "up"], check=True)
