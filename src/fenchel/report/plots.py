"""Plots of traces as PNG, by matplotlib: the extra `report`."""

from collections.abc import Iterable
from math import floor, log10

from fenchel.io.files import open_output
from fenchel.trace import Trace

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")  # Okabe and Ito
MARKED = 60  # points; more would merge into a thick line
STYLES = ("-", "--", ":")  # with the colours: more lines than there are solvers


def plot_race(traces: Iterable[Trace], path, tol: float | None = None) -> None:
    """Draw the distance from the optimum against passes and against seconds, a line per trace, to a PNG.

    `tol` adds the line that all of them aim at.
    """
    # Figure and canvas by hand: pyplot would choose a backend and keep figures for the whole process.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    traces = list(traces)
    figure = Figure(figsize=(11, 5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, column in ((left, "passes"), (right, "seconds")):
        _draw(axes, traces, column, tol)
    right.set_ylabel("")
    left.set_ylabel(" / ".join(dict.fromkeys(trace.measure for trace in traces)))
    figure.legend(*left.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    figure.suptitle(_title(traces), fontsize=11)
    with open_output(path) as stream:
        figure.savefig(stream, dpi=120, format="png")


def _title(traces):
    return next(iter(dict.fromkeys(trace.problem for trace in traces)), "")


def _draw(axes, traces, column, tol):
    for k, trace in enumerate(traces):
        trace.plot(
            axes,
            column,
            color=COLOURS[k % len(COLOURS)],
            linestyle=STYLES[k // len(COLOURS) % len(STYLES)],
            marker="o" if len(trace) <= MARKED else None,
            markersize=2.5,
            linewidth=1.4,
        )
    if tol:
        axes.axhline(tol, color="#999999", linewidth=0.9, zorder=0, label="tol")
    axes.set_xscale("symlog", linthresh=_threshold(traces, column))  # logarithmic, but with a 0
    axes.set_xlim(left=0.0)
    axes.set_title(f"against {column}", fontsize=10)
    axes.grid(True, which="major", alpha=0.25)


def _threshold(traces, column):
    """Where the axis turns linear: the power of ten below the first step of whoever stepped first."""
    steps = [x for trace in traces for x in trace.column(column)[1:2] if x > 0.0]
    return 10.0 ** floor(log10(min(steps, default=1.0)))
