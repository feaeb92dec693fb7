"""Sections of a page, and the page of them: one file that asks for nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .plots import NARROW, PALETTE, WIDE, Plot, clean


@dataclass
class Column:
    """kind: text, long (of sentences), num (to the right), code, or state (a word with a sign beside it)."""

    title: str
    kind: str = "text"


@dataclass
class Table:
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]

    @property
    def broad(self) -> bool:
        """Too broad to stand beside a plot."""
        return len(self.columns) > 8


@dataclass
class Command:
    """What a person can type, and why."""

    why: str
    lines: str


@dataclass
class Section:
    anchor: str
    title: str
    nav: str = ""
    lead: str = ""
    facts: list[str] = field(default_factory=list)
    plot: Plot | None = None
    tables: list[Table] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)


@dataclass
class Finding:
    """What to know first; level: good, note, act."""

    level: str
    text: str
    anchor: str = ""


@dataclass
class Page:
    title: str
    subtitle: str
    sections: list[Section]
    findings: list[Finding] = field(default_factory=list)
    tiles: list[tuple[str, str, str]] = field(default_factory=list)  # name, value, remark
    links: list[tuple[str, str]] = field(default_factory=list)
    made: str = ""


SIGNS = {"ready": "●", "building": "◐", "sealed": "■", "absent": "○", "convert": "▲", "no gain": "–", "little used": "·",
         "too large": "■", "not possible": "✕", "reached": "●", "different answers": "✕"}


def sign(word: str) -> str:
    return SIGNS.get(word, "")


def render(page: Page) -> str:
    environment = Environment(loader=PackageLoader("artidx_report", "."), autoescape=True, undefined=StrictUndefined,
                              finalize=lambda x: clean(x) if type(x) is str else x,
                              trim_blocks=True, lstrip_blocks=True)
    colours = {i: "".join(f"--{name}: {pair[i]}; " for name, pair in PALETTE.items()) for i in (0, 1)}
    return environment.get_template("page.html").render(
        page=page, sign=sign, light=Markup(colours[0]), dark=Markup(colours[1]),
        css=Markup(files("artidx_report").joinpath("page.css").read_text()),
        wide=lambda plot: Markup(plot.inline(WIDE)), narrow=lambda plot: Markup(plot.inline(NARROW)))


# ---- how values are written ---------------------------------------------------------


def number(x: Any) -> str:
    """Three digits that matter, thousands apart; nothing for what is not there."""
    if x is None:
        return ""
    x = float(x)
    if x == int(x) and abs(x) < 1e15:
        return f"{int(x):,}"
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.1f}" if abs(x) >= 100 else f"{x:.2f}"


def size(x: Any) -> str:
    """Bytes, in the unit that suits."""
    if x is None:
        return ""
    x = float(x)
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(x) < 1024:
            break
        x /= 1024
    else:
        unit = "TB"
    return f"{x:.0f} {unit}" if unit == "bytes" or abs(x) >= 100 else f"{x:.1f} {unit}"


def duration(ms: Any) -> str:
    if ms is None:
        return ""
    ms = float(ms)
    if abs(ms) < 1000:
        return f"{ms:.0f} ms" if abs(ms) >= 10 else f"{ms:.1f} ms"
    return f"{ms / 1000:.1f} s" if abs(ms) < 120_000 else f"{ms / 60_000:.0f} min"


def plural(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + ('es' if one.endswith('x') else 's')}"
