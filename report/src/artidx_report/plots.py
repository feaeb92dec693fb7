"""The plots: each is drawn by matplotlib once for a wide and once for a narrow place.

A drawing has the colours of PALETTE and no others.  In a page they become CSS variables,
so that they follow the page's light or dark colours.  A file has the light ones, and rules
for browsers that prefer dark.  Text stays text, in the reader's font.

The same rows give the same bytes: no date, and ids that come from the plot's name.
"""

import io
import logging
import math
import re
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.transforms import Affine2D

# name: (light, dark); each is at least 3:1 to the paper, ink and muted 4.5:1
PALETTE = {
    "ink": ("#1f2328", "#e6edf3"),
    "muted": ("#57606a", "#9da7b3"),
    "grid": ("#d8dee4", "#30363d"),
    "paper": ("#ffffff", "#0d1117"),
    "blue": ("#0969da", "#58a6ff"),
    "orange": ("#bc4c00", "#f0883e"),
    "purple": ("#8250df", "#bc8cff"),
    "green": ("#1a7f37", "#3fb950"),
    "pink": ("#bf3989", "#f778ba"),
    "gray": ("#818b98", "#7d8590"),
}
INK, MUTED, GRID, PAPER, BLUE, ORANGE, PURPLE, GREEN, PINK, GRAY = (light for light, _ in PALETTE.values())
# what a hatch is, in a square of eight
TILES = {"////": "M-2 2L2 -2M0 8L8 0M6 10L10 6", "..": "M2 2h1M6 6h1", "\\\\\\\\": "M-2 6L2 10M0 0L8 8M6 -2L10 2", "xx": "M0 0L8 8M0 8L8 0", "--": "M0 2h8M0 6h8"}
# parts of a bar: a colour and a hatch each, for those who do not tell colours
STYLES = [(BLUE, ""), (ORANGE, "////"), (GREEN, ".."), (PURPLE, "\\\\\\\\"), (PINK, "xx"), (GRAY, "--")]
LINES = [(BLUE, "-"), (ORANGE, (0, (5, 2))), (GREEN, (0, (1, 1.5))), (PURPLE, (0, (6, 2, 1, 2)))]
MARKERS = [(GREEN, "o"), (PURPLE, "s"), (ORANGE, "^"), (BLUE, "D"), (PINK, "v")]

WIDE, NARROW = 760, 352
SIZE = 12.5  # of text; a unit of a drawing is a pixel


@dataclass
class Plot:
    """A drawing in words and as a function: draw(width) gives the figure."""

    name: str
    title: str
    description: str
    draw: Callable[[int], Figure]
    source: str = ""

    def _svg(self, width: int) -> str:
        settings = {
            "svg.fonttype": "none",
            "svg.hashsalt": f"{self.name} {width}",
            "text.parse_math": False,
            "font.family": "DejaVu Sans",
            "font.size": SIZE,
        }
        out = io.StringIO()
        # a name in letters that matplotlib's font lacks is the reader's browser's to show
        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
        with matplotlib.rc_context(settings), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")
            figure = self.draw(width)
            FigureCanvasSVG(figure).print_svg(out, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        svg = out.getvalue()
        body = svg[svg.index(">", svg.index("<svg")) + 1 :]
        body = re.sub(r"<metadata>.*?</metadata>|<style .*?</style>|<!--.*?-->", "", body, flags=re.S)
        # ids that nothing refers to and that several drawings have, and the font: the reader's is taken
        body = re.sub(r' id="[a-z0-9_.]+_\d+"| transform="rotate\(-?0 [^"]*"', "", body)
        body = re.sub(r"font-family: [^;\"]*; |; stroke-linejoin: miter", "", body)
        body = re.sub(r"<pattern id=\"(\w+)\".*?</pattern>", _pattern, body, flags=re.S)
        body = re.sub(r"<g>\s*(<(text|path) [^<>]*(?:/>|>[^<>]*</\2>))\s*</g>", r"\1", body)
        body = re.sub(r"\d+\.\d{3,}", lambda m: f"{float(m.group()):.2f}", re.sub(r"^ +", "", body, flags=re.M))
        body = re.sub(r"\s+(?=[\n\"])|<defs>\s*</defs>", "", re.sub(r" *\n(?=[LMCz\"])", " ", body))
        w, h = (f"{inches * 72:g}" for inches in figure.get_size_inches())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
            f' width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" aria-label={quoteattr(clean(self.title))}>\n'
            f"<title>{escape(clean(self.title))}</title>\n<desc>{escape(clean(self.description))}</desc>\n" + body.lstrip()
        )

    def inline(self, width: int) -> str:
        """For a page, whose variables are the colours."""
        svg = self._svg(width)
        # a pointer's tip would say the title, which stands above
        svg = re.sub(r"<title>.*?</title>\n", "", svg, count=1, flags=re.S)
        for name, (light, _) in PALETTE.items():
            svg = svg.replace(light, f"var(--{name})")
        return svg.replace("<svg ", f'<svg class="{"wide" if width == WIDE else "narrow"}" ', 1)

    def file(self, stamp: str) -> str:
        """A file of its own, with its title and the run that it is of."""
        svg = self._svg(WIDE)
        w, h = (float(x) for x in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())
        rules = "".join(
            f'[style*="{what}: {light}"] {{ {what}: {dark} !important }}\n'
            for light, dark in PALETTE.values() for what in ("fill", "stroke")
            if f"{what}: {light}" in svg or light in (INK, MUTED, PAPER) and what == "fill"
        )
        body = svg[svg.index("<title>") : svg.rindex("</svg>")]
        title, desc = re.match(r"(<title>.*?</title>\n)(<desc>.*?</desc>\n)", body, flags=re.S).groups()
        height = h + 52
        return (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- {stamp} -->\n'
            f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{w:g}"'
            f' height="{height:g}" viewBox="0 0 {w:g} {height:g}" role="img"'
            f' font-family="system-ui, Helvetica, Arial, sans-serif">\n{title}{desc}'
            f"<style>\n* {{ stroke-linejoin: round }}\n@media (prefers-color-scheme: dark) {{\n{rules}}}\n</style>\n"
            f'<rect width="100%" height="100%" style="fill: {PAPER}"/>\n'
            f'<text x="12" y="22" style="font-size: 15px; font-weight: bold; fill: {INK}">{escape(self.title)}</text>\n'
            f'<text x="12" y="41" style="font-size: {SIZE:g}px; fill: {MUTED}">{escape(self.source)}</text>\n'
            f'<g transform="translate(0 52)">\n{body[len(title) + len(desc):]}</g>\n</svg>\n'
        )


def _pattern(found: re.Match) -> str:
    """matplotlib's is some kilobytes; the colour tells which hatch it is."""
    colour, hatch = next((c, h) for c, h in STYLES if h and f"stroke: {c}" in found.group())
    return (f'<pattern id="{found.group(1)}" patternUnits="userSpaceOnUse" width="8" height="8"><rect width="8" height="8" style="fill: {PAPER}"/>'
            f'<path d="{TILES[hatch]}" style="fill: none; stroke: {colour}; stroke-width: {2 if hatch == ".." else 1.2}"/></pattern>')


# ---- words --------------------------------------------------------------------------


def clean(text: str) -> str:
    """Without characters that XML has not; they come in names, too.  Lines stay lines."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def text_width(text: str, size: float = SIZE) -> float:
    """About, for no font is asked: what most sans-serif fonts stay within."""
    return size * sum(1.1 if unicodedata.east_asian_width(c) in "WF" else 0.6 for c in text)


def shorten(text: str, width: float) -> str:
    text = clean(text).replace("\n", " ")
    if text_width(text) <= width:
        return text
    # the beginning and the end: names often differ in their ends
    keep = max(6, int(width / (SIZE * 0.6)) - 1)
    return text[: keep // 2] + "…" + text[-(keep - keep // 2) :]


def times_text(ratio: float) -> str:
    return f"{ratio:.0f}×" if ratio >= 99.5 else f"{ratio:.3g}×" if ratio >= 10 else f"{ratio:.2f}×"


# ---- pieces -------------------------------------------------------------------------


class Sheet:
    """A figure to draw on in pixels from the upper left, without axes."""

    def __init__(self, width: float, height: float):
        self.figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        self.figure.patch.set_visible(False)
        self.place = Affine2D().scale(1, -1).translate(0, height)
        self.drawn = 0

    def _add(self, artist: Any) -> None:
        """Over what is there: matplotlib would draw all bars before all lines."""
        self.drawn += 1
        artist.set_zorder(self.drawn)
        self.figure.add_artist(artist)

    def line(self, xs: Sequence[float], ys: Sequence[float], colour: str = GRID, width: float = 1, style: Any = "-") -> None:
        self._add(Line2D(xs, ys, color=colour, linewidth=width, linestyle=style, transform=self.place))

    def mark(self, x: float, y: float, colour: str, marker: str, hollow: bool = False, size: float = 7) -> None:
        self._add(Line2D([x], [y], color=colour, marker=marker, markersize=size, linestyle="none", transform=self.place,
                                      markerfacecolor=PAPER if hollow else colour, markeredgewidth=1.8 if hollow else 0.8,
                                      markeredgecolor=colour if hollow else PAPER))

    def bar(self, x: float, y: float, width: float, height: float, colour: str, hatch: str) -> None:
        """From x to x + width, which may be negative; y is its middle.  The hatch " " is an empty bar."""
        self._add(Rectangle((min(x, x + width), y - height / 2), abs(width), height, facecolor=PAPER if hatch else colour,
                                         edgecolor=colour, hatch=hatch.strip() or None, linewidth=1, transform=self.place))

    def text(self, x: float, y: float, text: str, side: str = "left", colour: str = INK, size: float = SIZE, bold: bool = False) -> None:
        """side: which of its sides x is; y is its base line."""
        self.figure.text(x, y, text, ha=side, va="baseline", color=colour, fontsize=size, weight="bold" if bold else "normal",
                         transform=self.place, zorder=self.drawn)

    def legend(self, samples: Sequence[tuple], width: float) -> float:
        """Samples (kind, colour, style, words) from left to right; the height that they take."""
        at, y = 8.0, 14.0
        for kind, colour, style, words in samples:
            need = 40 + text_width(words, SIZE - 1)
            if at > 8 and at + need > width:
                at, y = 8.0, y + 18
            if kind == "bar":
                self.bar(at, y - 4, 16, 10, colour, style)
            elif kind == "line":
                self.line([at, at + 18], [y - 4, y - 4], colour, 2, style)
            else:
                self.mark(at + 8, y - 4, colour, style)
            self.text(at + 23, y, words, size=SIZE - 1)
            at += need
        return y + 14


def legend_height(words: Sequence[str], width: float) -> float:
    """What Sheet.legend will return: the sheet's height is wanted first."""
    at, y = 8.0, 14.0
    for word in words:
        need = 40 + text_width(word, SIZE - 1)
        if at > 8 and at + need > width:
            at, y = 8.0, y + 18
        at += need
    return y + 14


# ---- the kinds of plot --------------------------------------------------------------
# A narrow drawing has the words above each row instead of left of it.


def bars(labels: Sequence[str], series: Sequence[tuple[str, Sequence[float]]], value: Callable[[float], str],
         styles: Sequence[tuple[str, str]] = STYLES) -> Callable[[int], Figure]:
    """Horizontal bars, whose parts stand end to end; value writes the sum beside each."""

    def draw(width: int) -> Figure:
        above = width < 500
        row, bar = (40, 14) if above else (25, 15)
        label_room = 0 if above else min(300, max(text_width(clean(s)) for s in labels) + 14)
        legend = legend_height([name for name, _ in series], width) if len(series) > 1 else 4
        height = legend + row * len(labels) + 8
        sheet = Sheet(width, height)
        if len(series) > 1:
            sheet.legend([("bar", *style, name) for style, (name, _) in zip(styles, series)], width)
        parts = [[values[i] for _, values in series] for i in range(len(labels))]
        texts = [value(sum(p)) for p in parts]
        most = max(*(sum(v for v in p if v > 0) for p in parts), 1e-9)
        least = min(*(sum(v for v in p if v < 0) for p in parts), 0)
        left = label_room + 8
        scale = (width - left - 12 - max(map(text_width, texts))) / (most - least)
        zero = left - least * scale
        for i, label in enumerate(labels):
            y = legend + row * i
            middle = y + (row - bar / 2 - 3 if above else row / 2)
            if above:
                sheet.text(left, y + 15, shorten(label, width - 16))
            else:
                sheet.text(left - 8, middle + 4.5, shorten(label, label_room - 6), "right")
            ends = [zero, zero]  # of what is above nought, and below
            for part, style in zip(parts[i], styles):
                side = part < 0
                if abs(part * scale) > 0.2:
                    sheet.bar(ends[side], middle, part * scale, bar, *style)
                ends[side] += part * scale
            sheet.text(ends[0] + 6, middle + 4.5, texts[i])
        sheet.line([zero, zero], [legend, height - 4], MUTED)
        return sheet.figure

    return draw


def _ticks(low: float, high: float) -> list[float]:
    few = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4]
    step = 4.0 if high / low > 200 else 2.0
    return [t for t in (few if high / low < 6 else [step**i for i in range(-9, 12)]) if low <= t <= high]


def _numbered(ticks: Sequence[float], x: Callable[[float], float]) -> set[float]:
    """Those that have room for their number; 1 comes first."""
    out: list[float] = []
    for tick in sorted(ticks, key=lambda t: (t != 1, abs(x(t) - x(1)))):
        if all(abs(x(tick) - x(other)) >= 34 for other in out):
            out.append(tick)
    return set(out)


def times(rows: Sequence[tuple[str, str, float]], better: str = "art is better", worse: str = "btree is better",
          ) -> Callable[[int], Figure]:
    """(group, label, ratio): how far each is from 1, on a logarithmic scale."""

    def draw(width: int) -> Figure:
        above = width < 500
        row, head = (38, 30) if above else (21, 32)
        label_room = 0 if above else min(330, max(text_width(label) for _, label, _ in rows) + 16)
        left, top = label_room + (14 if above else 10), 44
        groups = [g for i, (g, _, _) in enumerate(rows) if g and (i == 0 or rows[i - 1][0] != g)]
        height = top + row * len(rows) + head * len(groups) + 10
        sheet = Sheet(width, height)
        ratios = [ratio for *_, ratio in rows]
        low, high = min(*ratios, 0.8) / 1.05, max(*ratios, 1.25) * 1.05
        per = (width - left - 56) / math.log(high / low)
        x = lambda ratio: left + per * math.log(ratio / low)  # noqa: E731
        ticks = _ticks(low, high)
        for tick in ticks:
            sheet.line([x(tick)] * 2, [top - 6, height - 6], INK if tick == 1 else GRID, 1.2 if tick == 1 else 1)
            if tick in _numbered(ticks, x):
                sheet.text(x(tick), top - 11, f"{tick:g}×", "center", MUTED, SIZE - 1.5)
        if x(1) > text_width("← " + worse, SIZE - 1) + 18:
            sheet.text(x(1) - 10, 14, "← " + worse, "right", MUTED, SIZE - 1)
        sheet.text(x(1) + 10, 14, better + " →", "left", MUTED, SIZE - 1)
        y, group = float(top), None
        for g, label, ratio in rows:
            if g and g != group:
                group = g
                words = shorten(g, width - 20)
                if above:  # over the lines of the scale
                    sheet.bar(12, y + head - 14, text_width(words) * 1.1 + 4, 16, PAPER, "")
                sheet.text(14 if above else 8, y + head - 10, words, bold=True)
                y += head
            middle = y + (row - 10 if above else row / 2)
            good = ratio >= 1
            if above:
                words = shorten(label, width - 20)
                sheet.bar(12, y + 11, text_width(words) + 4, 14, PAPER, "")
                sheet.text(14, y + 15, words)
            else:
                sheet.text(left - 10, middle + 4.5, shorten(label, label_room - 8), "right")
            sheet.line([x(1), x(ratio)], [middle] * 2, BLUE if good else ORANGE, 2.4, "-" if good else (0, (2, 1)))
            sheet.mark(x(ratio), middle, BLUE if good else ORANGE, "o" if good else "D", not good)
            sheet.text(max(x(ratio), x(1)) + 9, middle + 4.5, times_text(ratio))
            y += row
        return sheet.figure

    return draw


def dots(panels: Sequence[tuple[str, Sequence[tuple[str, Sequence[float]]]]], names: Sequence[str], columns: int,
         ) -> Callable[[int], Figure]:
    """Panels (title, [(label, values)]) of ratios to 1; names say what a row's values are."""

    def draw(width: int) -> Figure:
        across = columns if width >= 500 else 1
        row = 18
        label_room = max(text_width(label) for _, rows in panels for label, _ in rows) + 14
        down = [panels[i : i + across] for i in range(0, len(panels), across)]
        top = legend_height(names, width)
        tall = [70 + row * max(len(rows) for _, rows in line) for line in down]
        sheet = Sheet(width, top + sum(tall))
        sheet.legend([("mark", *MARKERS[i], name) for i, name in enumerate(names)], width)
        for line, height in zip(down, tall):
            for i, (title, rows) in enumerate(line):
                first = 8 + (width - 8) * i / across
                panel(sheet, first, top, first + label_room, width / across - label_room - 24, title, rows, row)
            top += height
        return sheet.figure

    def panel(sheet, first, top, left, room, title, rows, row) -> None:
        values = [v for _, vs in rows for v in vs if v]
        low, high = min(*values, 0.8) / 1.06, max(*values, 1.25) * 1.06
        x = lambda v: left + room * math.log(v / low) / math.log(high / low)  # noqa: E731
        sheet.text(first, top + 18, title, bold=True)
        end = top + 32 + row * len(rows)
        ticks = _ticks(low, high)
        for tick in ticks:
            sheet.line([x(tick)] * 2, [top + 28, end], INK if tick == 1 else GRID)
            if tick in _numbered(ticks, x):
                sheet.text(x(tick), end + 14, f"{tick:g}×", "center", MUTED, SIZE - 1.5)
        for j, (label, vs) in enumerate(rows):
            y = top + 32 + row * (j + 0.5)
            sheet.text(left - 10, y + 4.5, label, "right")
            known = [x(v) for v in vs if v]
            sheet.line([min(known), max(known)], [y, y], GRAY, 1.4)
            for v, (colour, marker) in zip(vs, MARKERS):
                if v:
                    sheet.mark(x(v), y, colour, marker)

    return draw


def lines(series: Sequence[tuple[str, Sequence[tuple[float, float]]]], ticks: Sequence[float], x_name: str,
          mark: float | None = None) -> Callable[[int], Figure]:
    """Values over time on a scale of log(1 + v), with ticks of that; mark is a value to look at."""

    def draw(width: int) -> Figure:
        legend = legend_height([name for name, _ in series], width) if len(series) > 1 else 6
        height = legend + (300 if width >= 500 else 240)
        sheet = Sheet(width, height)
        styles = [LINES[i % len(LINES)] for i in range(len(series))]
        if len(series) > 1:
            sheet.legend([("line", *style, name) for style, (name, _) in zip(styles, series)], width)
        xs = [x for _, points in series for x, _ in points]
        most = max(v for _, points in series for _, v in points)
        shown = [t for t in ticks if t <= most * 1.3] or [0]
        left, right, top, bottom = max(text_width(f"{t:,g}") for t in shown) + 14, width - 14, legend + 12, height - 44
        span = (max(xs) - min(xs)) or 1
        x = lambda v: left + (right - left) * (v - min(xs)) / span  # noqa: E731
        y = lambda v: bottom - (bottom - top) * math.log1p(v) / math.log1p(max(most, *shown, 1))  # noqa: E731
        for tick in shown:
            sheet.line([left, right], [y(tick)] * 2, INK if tick == mark else GRID)
            sheet.text(left - 6, y(tick) + 4.5, f"{tick:,g}", "right", MUTED, SIZE - 1.5)
        step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000, 1e9) if span / s <= (10 if width >= 500 else 5))
        for i in range(math.ceil(min(xs) / step), math.floor(max(xs) / step) + 1):
            sheet.text(x(i * step), bottom + 17, f"{i * step:g}", "center", MUTED, SIZE - 1.5)
        sheet.text((left + right) / 2, bottom + 36, x_name, "center", MUTED, SIZE - 1)
        for (colour, style), (_, points) in zip(styles, series):
            sheet.line([x(a) for a, _ in points], [y(v) for _, v in points], colour, 1.7, style)
        return sheet.figure

    return draw


def panels(labels: Sequence[str], series: Sequence[tuple[str, Sequence[float]]], value: Callable[[float], str],
           ) -> Callable[[int], Figure]:
    """The same rows once for each series, each on a scale of its own."""

    def draw(width: int) -> Figure:
        above = width < 500
        row = 21
        label_room = min(150 if above else 230, max(text_width(clean(s)) for s in labels) + 14)
        tall = 30 + row * len(labels) + 8
        sheet = Sheet(width, tall * (len(series) if above else 1))
        share = (width - label_room - 8) / (1 if above else len(series))
        for k, ((name, values), style) in enumerate(zip(series, STYLES)):
            top, left = (tall * k, label_room + 8) if above else (0, label_room + 8 + share * k)
            sheet.text(left, top + 18, name, bold=True)
            texts = [value(v) for v in values]
            scale = (share - 18 - max(map(text_width, texts))) / (max(values) or 1)
            for i, (label, v) in enumerate(zip(labels, values)):
                y = top + 30 + row * (i + 0.5)
                if above or k == 0:
                    sheet.text(label_room, y + 4.5, shorten(label, label_room - 6), "right")
                if v * scale > 0.2:
                    sheet.bar(left, y, v * scale, 13, *style)
                sheet.text(left + v * scale + 6, y + 4.5, texts[i])
            sheet.line([left, left], [top + 28, top + tall - 4], MUTED)
        return sheet.figure

    return draw
