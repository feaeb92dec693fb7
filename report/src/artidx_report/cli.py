"""The command artidx-report.

Exit codes: 0 the page is written; 2 the command line is wrong; 3 the server cannot be
reached; 4 artidx is not in the database (the page is written, with the commands); 5 a file
cannot be read or written; 6 the trial failed.
"""

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from . import ReportError, __version__

HELP = f"""One HTML page about the art indexes of a PostgreSQL server, or about what artidx's benches measured.

The page asks for nothing else: no scripts, no fonts, no pictures from elsewhere.

{" ".join(__doc__.split(chr(10) * 2)[1].split())}"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]},
                  pretty_exceptions_enable=False)

Out = Annotated[Path, typer.Option("--out", "-o", help="The page's file; - is the standard output.")]


def write(path: Path, text: str) -> None:
    if str(path) == "-":
        sys.stdout.write(text)
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ReportError(5, f"{path} cannot be written: {error.strerror}.") from error
    typer.echo(f"{path}: {len(text.encode()) // 1000} kB", err=True)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"artidx-report {__version__}")
        raise typer.Exit()


@app.callback()
def common(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False):
    pass


@app.command()
def server(
    dsn: Annotated[str, typer.Option(help="The server and database, as psql takes it; else PGHOST, PGDATABASE and the like.")] = "",
    out: Out = Path("artidx-report.html"),
    trial: Annotated[Optional[str], typer.Option(metavar="INDEX", help="Try this btree index first (CALL artidx_trial). For the owner of its table.")] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long --trial asks both indexes.")] = 10,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that each query may take.")] = 30,
    docs: Annotated[str, typer.Option(metavar="URL", help="Where artidx's documents are, for links to them.")] = "",
):
    """A page about a running server: advice, trials, memory, indexes, contention, builds, crashes, standbys.

    A role with pg_monitor sees all of it. Without --trial the session is read-only.
    """
    from . import server_page
    from .page import render
    from .server import look, no_extension, run_trial

    if docs and not docs.startswith(("http://", "https://", "file://", "/", "./", "../")):
        raise ReportError(2, f"--docs {docs} is neither a path nor an address.", "Give for instance --docs https://example.org/artidx/doc.")
    if trial is not None:
        run_trial(dsn, trial, seconds)
    shot = look(dsn, timeout)
    write(out, render(server_page.page(shot, docs)))
    if shot.server["extension"] is None:
        why, commands = no_extension(shot.server)
        raise ReportError(4, why, "\n".join(commands))


@app.command()
def figures(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Results of benches: *.tsv and *.csv, for instance doc/figures.")],
    out: Annotated[Optional[Path], typer.Option("--out", "-o", help="The page's file; - is the standard output.")] = None,
    svg: Annotated[Optional[Path], typer.Option(metavar="DIR", help="Write each plot into this folder, as an SVG file.")] = None,
):
    """A page, or files, with the plots of what artidx's benches measured."""
    from . import figures_page
    from .page import Page, render

    if out is None and svg is None:
        out = Path("artidx-figures.html")
    if svg is not None:
        for results, plot, _ in figures_page.drawings(folder):
            path = svg / f"{plot.name}.svg"
            try:
                svg.mkdir(parents=True, exist_ok=True)
                path.write_text(plot.file(figures_page.stamp(results)), encoding="utf-8")
            except OSError as error:
                raise ReportError(5, f"{path} cannot be written: {error.strerror}.") from error
            typer.echo(path, err=True)
    if out is not None:
        sections = figures_page.sections(folder)
        write(out, render(Page("artidx: what the benches measured", "Read the ratios: all did the same work in the same run.", sections,
                               made=f"Made by artidx-report {__version__} from {folder}.")))


def main() -> None:
    try:
        app()
    except ReportError as error:
        typer.echo(f"artidx-report: {error.message}", err=True)
        if error.hint:
            typer.echo(error.hint, err=True)
        sys.exit(error.code)
    except KeyboardInterrupt:
        sys.exit(130)
