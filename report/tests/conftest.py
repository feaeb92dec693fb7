"""What several tests use: a recorded server, and a database of the live one."""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import psycopg
import pytest

from artidx_report.server import Snapshot

HERE = Path(__file__).parent
TREE = Path(os.environ.get("TREE", HERE.parent.parent))
FIGURES = TREE / "doc" / "figures"


def recorded() -> Snapshot:
    data = json.loads((HERE / "recorded.json").read_text())
    for key in ("taken", "started"):
        data["server"][key] = datetime.fromisoformat(data["server"][key])
    return Snapshot(data["server"], data["rows"])


def pytest_collection_modifyitems(items):
    """The browser's tests last: they look at the pages that the others leave."""
    items.sort(key=lambda item: item.path.name == "test_browser.py")


@pytest.fixture
def shot() -> Snapshot:
    return recorded()


def report(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """The command, as a person calls it."""
    return subprocess.run([sys.executable, "-c", "from artidx_report.cli import main; main()", *arguments],
                          capture_output=True, text=True, timeout=600, env={**os.environ, **environment})


class Database:
    """One of the live server's, which goes with the test."""

    def __init__(self, dsn: str, name: str):
        self.base, self.name = dsn, name
        self.dsn = psycopg.conninfo.make_conninfo(dsn, dbname=name)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {name}")
            # the user has the name of the extension's schema, where his tables would go ("$user")
            connection.execute(f"ALTER DATABASE {name} SET search_path = public")

    def sql(self, *statements: str) -> list:
        rows = []
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def extension(self, version: str = "") -> None:
        self.sql("CREATE SCHEMA artidx", "GRANT USAGE ON SCHEMA artidx TO PUBLIC",
                 f"CREATE EXTENSION artidx SCHEMA artidx {version}")

    def drop(self) -> None:
        with psycopg.connect(self.base, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)")


@pytest.fixture
def database(request):
    """An empty database, without the extension."""
    if "REPORT_DSN" not in os.environ:
        pytest.skip("report/tests/run.sh starts the servers")
    made = Database(os.environ["REPORT_DSN"], "t_" + request.node.name.split("[")[0][:50].lower())
    yield made
    made.drop()
