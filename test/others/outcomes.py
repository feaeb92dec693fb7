"""The outcome of each test of a Python project, as a line of the file OUTCOMES.

"ok", "failed" or "skipped", the group, the test's name; of a failure also the kind of
error and the first line of its text.  A plugin of pytest (pytest -p outcomes), and settings
of Django with a test runner (runtests.py --settings=outcomes).
"""
import os
import re
import unittest


def write(outcome, group, name, error=None):
    text = ""
    if error is not None:
        # what differs from run to run: addresses, numbers of objects, times
        text = ": " + re.sub(r"0x[0-9a-f]+|\d{4,}|\d+\.\d+", "N", error).strip()[:300]
    with open(os.environ["OUTCOMES"], "a") as out:
        out.write(f"{outcome} {group} {name}{text}\n")


def first_line(error):
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"


# ---- pytest ----

def pytest_runtest_makereport(item, call):
    group = os.path.splitext(item.nodeid.split("::")[0])[0].removeprefix("test/").replace("/", ".")
    name = item.nodeid.split("::", 1)[1].replace(" ", "_")
    if call.excinfo is None:
        if call.when == "call":
            write("ok", group, name)
    elif call.excinfo.typename == "Skipped":
        write("skipped", group, name)
    else:
        write("failed", group, f"{name} ({call.when})", first_line(call.excinfo.value))


# ---- Django ----

def database(name):
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ.get("PGHOST"),
        "PORT": os.environ.get("PGPORT"),
        "USER": os.environ.get("PGUSER"),
        "NAME": name,
    }


DATABASES = {"default": database("django"), "other": database("django_other")}
SECRET_KEY = "not a secret: a test"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "outcomes.Runner"


class Result(unittest.TextTestResult):
    def write(self, outcome, test, err=None):
        # "group.tests.Class.test", or "setUpClass (group.tests.Class)"
        group = test.id().split()[-1].strip("()").split(".")[0]
        write(outcome, group, test.id().replace(" ", "_"), first_line(err[1]) if err else None)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.write("ok", test)

    def addError(self, test, err):
        super().addError(test, err)
        self.write("failed", test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.write("failed", test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write("skipped", test)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.write("ok", test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.write("failed", test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.write("failed", test, err)


def __getattr__(name):
    # only when Django asks for it, since pytest has no Django
    if name != "Runner":
        raise AttributeError(name)
    from django.test.runner import DiscoverRunner

    class Runner(DiscoverRunner):
        def get_resultclass(self):
            return Result

    return Runner
