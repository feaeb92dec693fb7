"""Pages from recorded rows and from files, without a server or a browser."""

import re
import shutil
import subprocess
from xml.etree import ElementTree

import matplotlib
import pytest
from conftest import FIGURES, TREE, recorded, report

from artidx_report import ReportError, figures_page, plots, results, server_page
from artidx_report.page import duration, number, render, size
from artidx_report.server import Missing, why

NASTY = '<b onclick="x()">it\'s & "odd" $x^2$</b>\n\x01'


def html(shot) -> str:
    return render(server_page.page(shot))


def test_every_section(shot):
    text = html(shot)
    for anchor in ("advice", "trials", "memory", "indexes", "contention", "elision", "builds", "crashes", "replicas", "settings", "evidence"):
        assert f'<h2 id="{anchor}">' in text
    assert "CALL artidx.artidx_from_btree(&#39;public.visit_token&#39;);" in text
    # each plot twice, in words once, and with a table
    assert text.count('<svg class="wide"') == text.count('<svg class="narrow"') == text.count("<figcaption>") == 6
    assert text.count("<table>") >= 8


def test_values_are_those_of_the_rows(shot):
    advice = server_page.advice(shot)
    rows = shot.rows["advice"]
    assert [r[0] for r in advice.tables[0].rows] == [r["indexrelid"] for r in rows]
    assert [r[2] for r in advice.tables[0].rows] == [number(r["score"]) for r in rows]
    memory = shot.rows["memory"][0]
    parts = dict(server_page.memory(shot).tables[1].rows)
    assert parts["free"] == size(memory["free_bytes"])
    assert sum(memory[k] for k in ("used_bytes", "free_bytes", "reserve_bytes", "overhead_bytes")) == memory["area_bytes"]
    indexes = server_page.indexes(shot)
    assert len(indexes.tables[0].rows) == len(shot.rows["indexes"])
    gains = {r["measure"]: r["gain"] for r in shot.rows["trials"]}
    shown = {row[1]: row[5] for row in server_page.trials(shot).tables[0].rows}
    assert shown["look-up"] == plots.times_text(float(gains["look-up"]))


def test_names_are_escaped(shot):
    for row in shot.rows["indexes"] + shot.rows["contention"]:
        row["indexrelname"] = NASTY
    for row in shot.rows["advice"]:
        row["indexrelid"] = row["reason"] = row["command"] = NASTY
    for row in shot.rows["trials"]:
        row["index_name"] = row["remark"] = NASTY
    for row in shot.rows["usage"]:
        row["owner"] = row["database"] = NASTY
    shot.server["database"] = shot.server["role"] = NASTY
    text = html(shot)
    assert "<b onclick" not in text and "&lt;b onclick" in text
    assert "$x^2$" in text  # matplotlib would make a formula of it
    for svg in re.findall(r"<svg .*?</svg>", text, flags=re.S):
        ElementTree.fromstring(svg)


def test_nothing_is_asked_for(shot):
    text = html(shot)
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    assert not re.search(r"<script|<iframe|@import|url\((?!#)", text)
    assert not re.findall(r'(?:src|href)="(?!#|data:,")[^"]*"', text)
    linked = render(server_page.page(shot, "https://example.org/doc/"))
    assert 'href="https://example.org/doc/advice.md"' in linked


@pytest.mark.parametrize("source", ["advice", "trials", "memory", "indexes", "contention", "aborts", "progress", "crash_checks", "senders"])
def test_what_is_missing_has_its_command(shot, source):
    shot.rows[source] = Missing("The role may not read this.", "GRANT pg_monitor TO me;")
    shot.server["monitor"] = False
    text = html(shot)
    assert "The role may not read this." in text and "GRANT pg_monitor TO me;" in text
    assert "may not read all views" in text


def test_nothing_there_yet(shot):
    for source in shot.rows:
        if source != "memory":
            shot.rows[source] = []
    text = html(shot)
    for words in ("This database has no art index.", "no btree index", "No trial is kept.", "No standby is connected.", "Nothing is being built"):
        assert words in text


def test_nothing_is_said_of_what_the_role_cannot_see(shot):
    shot.rows["senders"] = []
    shot.server["monitor"] = False
    text = html(shot)
    assert "No standby is connected." not in text and "Only a role with pg_monitor sees" in text


def test_what_to_do_first(shot):
    def said():
        return [f.text for f in server_page.findings(shot) if f.level == "act"]

    assert said() == []
    shot.rows["indexes"][0].update(state="sealed", reason="memory full")
    shot.rows["crash_checks"] = [{"waiting": 0, "sound": 3, "different": 1}]
    shot.rows["memory"][0].update(used_bytes=960, free_bytes=40, sealed=1)
    shot.rows["standby"] = [{"database": "d", "lag_ms": 5000.0}]
    assert len(said()) == 5 and "memory full" in said()[0] and "96 %" in said()[2]
    # a page of that has a bar with the state in words, not only in colour
    assert "(sealed)" in html(shot)


def test_an_older_version_has_fewer_columns(shot):
    for row in shot.rows["indexes"]:
        del row["next_try"], row["idx_scan"]
    shot.server["extension"] = "0.1.0"
    assert "ALTER EXTENSION artidx UPDATE" in html(shot)


def test_without_the_extension(shot):
    shot.server.update(extension=None, schema=None)
    shot.rows = {"settings": [], "senders": [], "btree": [{"schemaname": "public", "relname": "t", "indexrelname": "t_pkey", "bytes": 8192, "idx_scan": 1}]}
    text = html(shot)
    assert "CREATE EXTENSION artidx SCHEMA artidx;" in text and "t_pkey" in text
    shot.server["available"] = None
    assert "apt install postgresql-15-artidx" in html(shot)


def test_values_in_words():
    assert number(None) == "" and number(1234567) == "1,234,567" and number(0.5) == "0.50" and number(12345.6) == "12,346"
    assert [size(x) for x in (0, 1023, 1536, 5 * 2**20, 3 * 2**40)] == ["0 bytes", "1023 bytes", "1.5 kB", "5.0 MB", "3.0 TB"]
    assert [duration(x) for x in (0.4, 25, 1500, 600_000)] == ["0.4 ms", "25 ms", "1.5 s", "10 min"]
    assert plots.shorten("x" * 300, 100).count("…") == 1 and plots.text_width(plots.shorten("x" * 300, 100)) <= 110


# ---- plots and figures --------------------------------------------------------------


def test_the_same_rows_give_the_same_bytes():
    first, second = ([(p.name, p.file("stamp"), p.inline(plots.NARROW)) for _, p, _ in figures_page.drawings(FIGURES)] for _ in range(2))
    assert first == second
    for _, file, _ in first:
        ElementTree.fromstring(file)
        assert "prefers-color-scheme: dark" in file and "<title>" in file and "<desc>" in file


def test_the_repository_has_what_is_drawn():
    wrong = [n for r, p, _ in figures_page.drawings(FIGURES)
             for n in [FIGURES / f"{p.name}.svg"] if n.read_text() != p.file(figures_page.stamp(r))]
    made = re.search(r"matplotlib ([\d.]+)", (FIGURES / "bench.svg").read_text()).group(1)
    if made != matplotlib.__version__:
        pytest.skip(f"the plots were drawn by matplotlib {made}")
    assert wrong == []


def test_perl_notices_a_plot_of_other_results(tmp_path):
    if not shutil.which("perl"):
        pytest.skip("no perl")
    for part in ("doc", "test/bench", "report/src"):
        shutil.copytree(TREE / part, tmp_path / part)
    shutil.copy(TREE / "README.md", tmp_path)
    check = ["perl", str(tmp_path / "test/bench/figures.pl"), "check"]
    assert subprocess.run(check).returncode == 0
    with open(tmp_path / "doc/figures/sysbench.tsv", "a") as out:
        out.write("oltp_point_select\tart\t1\t1\t1\t1\t0\t\n")
    done = subprocess.run(check, capture_output=True, text=True)
    assert done.returncode == 1 and "doc/figures/sysbench.svg is not drawn from" in done.stderr


def test_ratios_of_the_bench():
    [(plot, table)] = figures_page.bench(results.read(FIGURES / "bench.tsv"))
    perl = subprocess.run(["perl", TREE / "test/bench/figures.pl", "table", FIGURES / "bench.tsv"], capture_output=True, text=True).stdout
    rows = {line[:44].rstrip(): line for line in perl.splitlines()}
    compared = 0
    for title, *_, times in table.rows:
        ratio = re.search(r" (\d\.\d{3}) ", rows[title])
        if times and title in rows and ratio and not title.startswith("the same") and float(ratio.group(1)) > 0.02:
            assert abs(1 / float(times[:-1]) / float(ratio.group(1)) - 1) < 0.03, title
            compared += 1
    assert compared > 30


def test_every_kind_of_results(tmp_path):
    (tmp_path / "outage.csv").write_text("run,time,lookups,inserts\n" + "".join(
        f'"{run}",{t / 10:.1f},{0 if 0 <= t < wait else 300},5\n' for run, wait in (("btree", 12), ("art, kept", 8)) for t in range(-30, 50)))
    (tmp_path / "lag.csv").write_text("am,time,lag_ms,lag_bytes,replay_bytes\n" + "".join(f"art,{i / 50},{i % 7},0,0\n" for i in range(400)))
    (tmp_path / "notes.tsv").write_text("some\tother\n1\t2\n")
    done = report("figures", str(tmp_path), "--out", "-")
    assert done.returncode == 0 and done.stdout.count('<svg class="wide"') == 2
    assert "<td class=\"num\">0.8</td>" in done.stdout and "<td class=\"num\">1.2</td>" in done.stdout


def test_errors_in_words(tmp_path):
    for arguments, code, words in (
        (["figures", str(tmp_path / "gone")], 5, "is no folder"),
        (["figures", str(tmp_path)], 5, "has no results of a bench"),
        (["figures", str(FIGURES), "--out", str(tmp_path / "no" / "page.html")], 5, "cannot be written: No such file"),
        (["server", "--dsn", "host=127.0.0.1 port=1"], 3, "The server cannot be reached"),
        (["server", "--dsn", "nonsense"], 3, "The server cannot be reached"),
        (["server", "--docs", "javascript:alert(1)"], 2, "neither a path nor an address"),
        (["server", "--seconds", "0"], 2, "--seconds"),
        (["nothing"], 2, "No such command"),
    ):
        done = report(*arguments)
        assert done.returncode == code and words in done.stderr + done.stdout and "Traceback" not in done.stderr, (arguments, done)
    (tmp_path / "bad.tsv").write_text("measure\tam\trep\tvalue\tunit\nlookup\tart\n")
    done = report("figures", str(tmp_path))
    assert done.returncode == 5 and "row 2 has 2 values for 5 columns" in done.stderr


def test_help():
    for command in ([], ["server"], ["figures"]):
        done = report(*command, "--help")
        assert done.returncode == 0 and "Usage" in done.stdout
    assert report("--version").stdout == f"artidx-report {recorded().server['report']}\n"


def test_refusals_have_the_command():
    import psycopg

    server = recorded().server | {"role": "Some One", "usage": True, "extension": "0.1.0"}
    assert why(psycopg.errors.InsufficientPrivilege("x"), server, False).command == 'GRANT pg_monitor TO "Some One";'
    assert why(psycopg.errors.InsufficientPrivilege("x"), server | {"usage": False}, False).command == 'GRANT USAGE ON SCHEMA artidx TO "Some One";'
    assert why(psycopg.errors.UndefinedFunction("x"), server, False).command == "ALTER EXTENSION artidx UPDATE;"
    assert "--timeout" in why(psycopg.errors.QueryCanceled("x"), server, False).reason
    with pytest.raises(ReportError):
        results.read_all(FIGURES / "nothing")
