"""Panels of curves, drawn alike for all papers."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#444444", "#e69f00", "#56b4e9", "#a6761d", "#882255")
STYLES = ("-", "--", "-.", ":")
WIDTH, HEIGHT = 3.7, 2.9  # inches of a panel
LETTERS = 48  # of a legend that fit below a panel


@dataclass
class Panel:
    """Curves {label: (x, y)} on one pair of axes; marks draws points too."""

    title: str
    x: str
    y: str
    curves: dict = field(default_factory=dict)
    log_x: bool = False
    log_y: bool = False
    marks: bool = False
    y_limits: tuple | None = None
    x_limits: tuple | None = None


def draw(panels: Iterable[Panel], path: Path, columns: int = 3) -> None:
    """Write the panels, row by row, with one legend: a label has one colour throughout."""
    panels = list(panels)
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(WIDTH * columns, HEIGHT * rows + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    labels = list(dict.fromkeys(label for panel in panels for label in panel.curves))
    looks = {label: look(k) for k, label in enumerate(labels)}
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    lines = {}
    for panel, ax in zip(panels, axes, strict=False):
        lines |= draw_panel(panel, ax, looks)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    if all(set(panel.curves) == set(labels) for panel in panels):
        add_legend(figure, {label: lines[label] for label in labels if label in lines}, columns)
    else:
        for ax in axes[: len(panels)]:
            if ax.lines:
                ax.legend(fontsize=7)
    figure.savefig(path, dpi=100)


def add_legend(figure, lines: dict, columns: int) -> None:
    """One legend below all panels, in as many rows as its words need."""
    if lines:
        room = int(LETTERS * columns / (max(map(len, lines)) + 6))
        settings = {"loc": "outside lower center", "ncols": max(min(len(lines), room), 1), "fontsize": 8}
        figure.legend(list(lines.values()), list(lines), **settings)


def look(k: int) -> dict:
    """Colour and dashes of the k-th label: curves that lie on each other are both seen."""
    return {"color": COLORS[k % len(COLORS)], "linestyle": STYLES[k % len(STYLES)]}


def draw_panel(panel: Panel, ax, looks: dict) -> dict:
    """{label: line} of what was drawn: points that are not finite, or not positive on a log axis, are not."""
    lines = {}
    for label, (x, y) in panel.curves.items():
        points = [(a, b) for a, b in zip(x, y, strict=True) if _can_be_shown(a, b, panel)]
        if points:
            marker = {"marker": "o", "markersize": 3} if panel.marks or len(points) == 1 else {}
            shown = looks[label] | marker | {"label": label}
            (lines[label],) = ax.plot(*zip(*points, strict=True), linewidth=1.4, **shown)
    ax.set_title(panel.title, fontsize=9)
    ax.set_xlabel(panel.x, fontsize=8)
    ax.set_ylabel(panel.y, fontsize=8)
    ax.tick_params(which="both", labelsize=7)
    ax.grid(alpha=0.3)
    if lines:
        ax.set_xscale("log" if panel.log_x else "linear")
        ax.set_yscale("log" if panel.log_y else "linear")
        ax.set(**{"ylim": panel.y_limits} if panel.y_limits else {})
        ax.set(**{"xlim": panel.x_limits} if panel.x_limits else {})
    return lines


def _can_be_shown(x, y, panel) -> bool:
    return isfinite(x) and isfinite(y) and (y > 0.0 or not panel.log_y) and (x > 0.0 or not panel.log_x)
