"""One client's connection, and transactions whose outcome is known, refused or not known."""

import psycopg

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"

READ_COMMITTED = "READ COMMITTED"
REPEATABLE_READ = "REPEATABLE READ"
SERIALIZABLE = "SERIALIZABLE"
LEVELS = (READ_COMMITTED, REPEATABLE_READ, SERIALIZABLE)

# enable_seqscan, enable_indexscan, enable_indexonlyscan, enable_bitmapscan
WAYS = {
    "index": ("off", "on", "off", "off"),
    "only": ("off", "on", "on", "off"),
    "bitmap": ("off", "off", "off", "on"),
    "seq": ("on", "off", "off", "off"),
}
BY_INDEX = ("index", "only", "bitmap")

# What any server may say while processes die, stand still and are cut off: serialization, deadlock,
# shutdown, crash, cancel, connection, "this is a standby", locks, too many clients.
EXPECTED = ("40001", "40P01", "57P01", "57P02", "57P03", "57014", "08", "25006", "55P03", "53300")
# The index that a plan was made for is gone: with any access method, beside DDL.
VANISHED = "could not open relation with OID"


class Difference(Exception):
    """A server has said what cannot be so."""


class Session:
    """A connection to the primary or to the standby.  Not for two threads at a time."""

    def __init__(self, run, role, name):
        self.run = run
        self.role = role
        self.name = name
        self.conn = None
        self.generation = None
        self.notices = []

    def ensure(self):
        """A connection to the server that has the role now."""
        cluster = self.run.cluster
        if self.conn is not None and (self.conn.closed or self.generation != cluster.generation):
            self.close()
        if self.conn is not None:
            return
        primary, standby, self.generation = cluster.roles
        node = primary if self.role == "primary" else standby
        self.conn = psycopg.connect(
            host=node.address, port=node.port, user="faults", dbname="postgres", autocommit=True,
            application_name="faults-client", connect_timeout=3, keepalives_idle=1,
            keepalives_interval=1, keepalives_count=3, tcp_user_timeout=4000,
        )
        self.notices = []
        self.conn.add_notice_handler(lambda diag: self.notices.append(diag.message_primary))

    def close(self):
        conn, self.conn = self.conn, None
        if conn is not None:
            try:
                conn.close()
            except psycopg.Error:
                pass

    def execute(self, text, args=None):
        return self.conn.execute(text, args)

    def rows(self, text, args=None):
        """Not prepared: a plan that is kept would go the way of an earlier query."""
        rows = self.conn.execute(text, args, prepare=False).fetchall()
        self.run.verified(len(rows))
        return rows

    def way(self, name):
        """Until the end of the transaction the planner goes this way, if it can."""
        self.execute(
            "SELECT set_config('enable_seqscan', %s, true), set_config('enable_indexscan', %s, true),"
            " set_config('enable_indexonlyscan', %s, true), set_config('enable_bitmapscan', %s, true)",
            WAYS[name],
        )

    def tx(self, level, body, *settings, also=(), prepare=None):
        """Runs body(self) in a transaction.  Returns (OK, its value), (FAILED, SQLSTATE) when the
        transaction was not committed, or (UNKNOWN, SQLSTATE) when nobody has said.  An SQLSTATE
        that neither a fault explains nor "also" names is a difference.  With the name "prepare" it
        is committed in two phases."""
        committing = False
        try:
            self.ensure()
            self.execute("BEGIN ISOLATION LEVEL " + level)
            for setting in settings:
                self.execute("SET LOCAL " + setting)
            value = body(self)
            self.notices.clear()
            committing = True
            if prepare:
                self.execute(f"PREPARE TRANSACTION '{prepare}'")
                committing = "prepared"
                self.execute(f"COMMIT PREPARED '{prepare}'")
            elif self.execute("COMMIT").statusmessage != "COMMIT":
                return FAILED, "rolled back"
            # "canceling wait for synchronous replication": it is committed here only
            return (UNKNOWN, "01000") if self.notices else (OK, value)
        except psycopg.Error as error:
            return self.ended(error, committing, also)
        except Difference:
            self.close()
            raise

    def ended(self, error, committing, also):
        """What an error says of the transaction."""
        code = error.sqlstate or "08006"
        if self.conn is None or self.conn.closed or self.conn.broken:
            self.close()
        else:
            try:
                self.execute("ROLLBACK")
            except psycopg.Error:
                self.close()
        if committing == "prepared" and code == "42704":
            return UNKNOWN, code    # somebody else has ended it
        if not (code.startswith(self.run.expected + also) or VANISHED in str(error)):
            raise Difference(f"an error that no fault explains: {code} {error}")
        if committing == "prepared" or committing and code[:2] in ("08", "57", "58", "XX"):
            return UNKNOWN, code
        return FAILED, code
