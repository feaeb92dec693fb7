"""What a server says of its art indexes: a snapshot, as plain rows.

Every query is one statement of a read-only session.  One that fails leaves its place to
a Missing, which says why and the command that helps; the others go on.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.rows import dict_row

from . import ReportError, __version__

Row = dict[str, Any]


@dataclass
class Missing:
    """Rows that are not there: why, and the command that helps, if one does."""

    reason: str
    command: str = ""


@dataclass
class Snapshot:
    """rows[source] are the rows of a query of SOURCES, or a Missing."""

    server: Row
    rows: dict[str, list[Row] | Missing] = field(default_factory=dict)

    def get(self, source: str) -> list[Row]:
        rows = self.rows.get(source)
        return rows if isinstance(rows, list) else []

    def missing(self, source: str) -> Missing | None:
        rows = self.rows.get(source)
        return rows if isinstance(rows, Missing) else None


SERVER = """
SELECT current_database() AS database, current_user AS role, current_setting('server_version') AS version,
       pg_is_in_recovery() AS standby, date_trunc('second', now()) AS taken,
       date_trunc('second', pg_postmaster_start_time()) AS started,
       pg_has_role('pg_monitor', 'USAGE') AS monitor,
       current_setting('artidx.memory', true) AS memory_setting,
       (SELECT default_version FROM pg_available_extensions WHERE name = 'artidx') AS available,
       e.extversion AS extension, n.nspname AS schema, has_schema_privilege(n.oid, 'USAGE') AS usage,
       d.nspname AS debug_schema, has_schema_privilege(d.oid, 'USAGE') AS debug_usage
FROM (VALUES (1)) AS one
     LEFT JOIN pg_extension e ON e.extname = 'artidx' LEFT JOIN pg_namespace n ON n.oid = e.extnamespace
     LEFT JOIN pg_extension x ON x.extname = 'artidx_debug' LEFT JOIN pg_namespace d ON d.oid = x.extnamespace
"""

# What needs no extension.
PLAIN = {
    "settings": "SELECT name, setting, unit, short_desc FROM pg_settings WHERE name LIKE 'artidx.%' ORDER BY name",
    "btree": """
        SELECT s.schemaname, s.relname, s.indexrelname, pg_relation_size(s.indexrelid) AS bytes, s.idx_scan
        FROM pg_stat_user_indexes s JOIN pg_class c ON c.oid = s.indexrelid JOIN pg_am a ON a.oid = c.relam
        WHERE a.amname = 'btree' ORDER BY 4 DESC, 1, 3 LIMIT 200""",
    "senders": """
        SELECT application_name, state, sync_state, pg_wal_lsn_diff(sent_lsn, replay_lsn)::bigint AS behind,
               replay_lag::text AS replay_lag
        FROM pg_stat_replication WHERE state IS NOT NULL ORDER BY 1""",
}

# {s} is the schema of the extension.  Columns are taken as they are: an older version has fewer.
SOURCES = {
    "advice": "SELECT a.* FROM {s}.artidx_advise() a",
    "trials": "SELECT t.* FROM {s}.artidx_trials t ORDER BY started DESC, line",
    "memory": "SELECT m.* FROM {s}.artidx_memory m",
    "usage": "SELECT u.* FROM {s}.artidx_usage u ORDER BY bytes DESC, database, owner",
    "indexes": """
        SELECT a.*, u.idx_scan, pg_get_userbyid(c.relowner) AS owner
        FROM {s}.artidx_indexes a JOIN pg_class c ON c.oid = a.indexrelid
             LEFT JOIN pg_stat_all_indexes u ON u.indexrelid = a.indexrelid
        ORDER BY a.bytes DESC NULLS LAST, a.schemaname, a.indexrelname""",
    "contention": "SELECT c.* FROM {s}.artidx_contention c",
    "progress": """
        SELECT p.*, p.index_relid::regclass::text AS index_name, current_database() = p.datname AS here
        FROM {s}.artidx_progress p""",
    "crash_checks": "SELECT c.* FROM {s}.artidx_crash_checks c",
    "standby": "SELECT s.* FROM {s}.artidx_standby s ORDER BY database",
}
# 0.1.0 had these in artidx itself
DEBUG = {
    "aborts": "SELECT a.* FROM {s}.artidx_aborts a WHERE attempts > 0 OR sections > 0",
    "hardware": "SELECT h.* FROM {s}.artidx_hardware() h",
}


def connect(dsn: str) -> psycopg.Connection:
    try:
        return psycopg.connect(dsn, autocommit=True, row_factory=dict_row, connect_timeout=10,
                               application_name="artidx-report")
    except psycopg.Error as error:
        raise ReportError(
            3, "The server cannot be reached: " + str(error).strip().splitlines()[0],
            "Give --dsn as psql takes it, for instance --dsn 'host=db1 user=monitor dbname=shop'.",
        ) from error


def ident(name: str) -> str:
    """A name as psql takes it: without quotes where they are not needed."""
    return name if re.fullmatch("[a-z_][a-z0-9_]*", name) else sql.Identifier(name).as_string()


def why(error: psycopg.Error, server: Row, debug: bool) -> Missing:
    """A failed query, in words."""
    name = ident(server["role"])
    extension = "artidx_debug" if debug else "artidx"
    if isinstance(error, errors.InsufficientPrivilege):
        schema = server["debug_schema"] if debug else server["schema"]
        if not server["debug_usage" if debug else "usage"]:
            return Missing("The role may not use the extension's schema.",
                           f"GRANT USAGE ON SCHEMA {ident(schema)} TO {name};")
        return Missing("The role may not read this.", f"GRANT pg_monitor TO {name};")
    if isinstance(error, (errors.UndefinedTable, errors.UndefinedFunction, errors.UndefinedColumn)):
        return Missing(f"Version {server['extension']} of the extension does not have this.",
                       f"ALTER EXTENSION {extension} UPDATE;")
    if isinstance(error, errors.QueryCanceled):
        return Missing("The server did not answer within the time of --timeout.")
    if isinstance(error, errors.ObjectNotInPrerequisiteState) and server["memory_setting"] is None:
        return Missing("artidx is not preloaded, so there is no memory for its indexes.", PRELOAD)
    return Missing("The server says: " + (error.diag.message_primary or str(error)).strip().rstrip(".") + ".")


def _read(connection: psycopg.Connection, query: str, schema: str, server: Row, debug: bool = False) -> list[Row] | Missing:
    try:
        return connection.execute(sql.SQL(query).format(s=sql.Identifier(schema))).fetchall()
    except psycopg.OperationalError as error:
        if connection.closed:
            raise ReportError(3, "The server closed the connection: " + str(error).strip().splitlines()[0]) from error
        return why(error, server, debug)
    except psycopg.Error as error:
        return why(error, server, debug)


def look(dsn: str, timeout: float = 30) -> Snapshot:
    """All of it.  Nothing is changed: the session is read-only."""
    with connect(dsn) as connection:
        connection.execute("SELECT set_config('default_transaction_read_only', 'on', false),"
                           " set_config('search_path', 'pg_catalog', false), set_config('lock_timeout', '2s', false),"
                           " set_config('statement_timeout', %s, false)", [f"{timeout * 1000:.0f}"])
        server = connection.execute(SERVER).fetchone()
        server["report"] = __version__
        shot = Snapshot(server)
        for source, query in PLAIN.items():
            shot.rows[source] = _read(connection, query, "pg_catalog", server)
        if server["extension"] is None:
            return shot
        for source, query in SOURCES.items():
            shot.rows[source] = _read(connection, query, server["schema"], server)
        old = server["extension"] == "0.1.0"
        for source, query in DEBUG.items():
            if server["debug_schema"] or old:
                shot.rows[source] = _read(connection, query, server["debug_schema"] or server["schema"], server, not old)
            else:
                home = ident(server["schema"])
                shot.rows[source] = Missing("The extension artidx_debug has this, and is not in the database.",
                                            f"CREATE EXTENSION artidx_debug SCHEMA {home};")
        return shot


def run_trial(dsn: str, index: str, seconds: float) -> None:
    """CALL artidx_trial: it builds an art index beside this one, and drops it at the end."""
    with connect(dsn) as connection:
        server = connection.execute(SERVER).fetchone()
        if server["extension"] is None:
            raise ReportError(4, no_extension(server)[0], "\n".join(no_extension(server)[1]))
        if server["standby"]:
            raise ReportError(6, "The server is a standby, and a trial builds an index.", "Try on the primary.")
        call = sql.SQL("CALL {}.artidx_trial({}::regclass, {})").format(
            sql.Identifier(server["schema"]), sql.Literal(index), sql.Literal(seconds))
        try:
            connection.execute(call)
        except psycopg.Error as error:
            if isinstance(error, errors.UndefinedFunction) and "artidx_trial" in str(error):
                raise ReportError(6, f"Version {server['extension']} of the extension has no trial.",
                                  "ALTER EXTENSION artidx UPDATE;") from error
            raise ReportError(6, f"The trial of {index} failed: {error.diag.message_primary or error}",
                              error.diag.message_hint or "") from error


def no_extension(server: Row) -> tuple[str, list[str]]:
    """Why there is none, and the commands."""
    if server["available"] is None:
        return ("artidx is not installed on this server.",
                ["apt install postgresql-" + server["version"].split(".")[0] + "-artidx   # or: make && make install",
                 "# in postgresql.conf, and a restart:", "shared_preload_libraries = 'artidx'",
                 "-- then, in this database:", *CREATE])
    return (f"The extension artidx is not in the database {server['database']}.", CREATE)


PRELOAD = "shared_preload_libraries = 'artidx'   # in postgresql.conf, and restart the server"
CREATE = ["CREATE SCHEMA artidx;", "GRANT USAGE ON SCHEMA artidx TO PUBLIC;", "CREATE EXTENSION artidx SCHEMA artidx;"]
