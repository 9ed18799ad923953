"""Plots of traces as PNG, by matplotlib: the extra `report`."""

from collections.abc import Iterable
from math import floor, log10

from fenchel.io.files import open_output
from fenchel.trace import Trace, distances_to_optimum, drawable

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")  # Okabe and Ito
MARKED = 60  # points; more would merge into a thick line
STYLES = ("-", "--", ":")  # with the colours: more lines than there are solvers


OPTIMUM = "relative distance to the optimum"


def plot_race(traces: Iterable[Trace], path, tol: float | None = None, one_problem: bool = True) -> None:
    """Draw the distance from the optimum against passes and against seconds, a line per trace, to a PNG.

    Above, where all are runs on one problem, how far each objective is above the optimum (the best bound that
    any of them has proven); below the relative gap, which each has proven by itself. `tol` adds the line that
    all of them aim at.
    """
    # Figure and canvas by hand: pyplot would choose a backend and keep figures for the whole process.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    traces = list(traces)
    measures = " / ".join(dict.fromkeys(trace.measure for trace in traces))
    drawn = [(measures, [trace.distances() for trace in traces])]
    if one_problem:
        drawn.insert(0, (OPTIMUM, distances_to_optimum(traces)))
    figure = Figure(figsize=(11, 1 + 4 * len(drawn)), layout="constrained")
    FigureCanvasAgg(figure)
    rows = figure.subplots(len(drawn), 2, sharey="row", squeeze=False)
    for (name, distances), pair in zip(drawn, rows, strict=True):
        for axes, column in zip(pair, ("passes", "seconds"), strict=True):
            _draw(axes, traces, distances, column, tol)
        pair[0].set_ylabel(name)
    figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    figure.suptitle(_title(traces), fontsize=11)
    with open_output(path) as stream:
        figure.savefig(stream, dpi=120, format="png")


def _title(traces):
    return next(iter(dict.fromkeys(trace.problem for trace in traces)), "")


def _draw(axes, traces, distances, column, tol):
    for k, (trace, far) in enumerate(zip(traces, distances, strict=True)):
        axes.plot(
            *drawable(zip(trace.column(column), far, strict=True)),
            label=trace.solver,
            color=COLOURS[k % len(COLOURS)],
            linestyle=STYLES[k // len(COLOURS) % len(STYLES)],
            marker="o" if len(trace) <= MARKED else None,
            markersize=2.5,
            linewidth=1.4,
        )
    if tol:
        axes.axhline(tol, color="#999999", linewidth=0.9, zorder=0, label="tol")
    axes.set_yscale("log")
    axes.set_xlabel(column)
    axes.set_xscale("symlog", linthresh=_threshold(traces, column))  # logarithmic, but with a 0
    axes.set_xlim(left=0.0)
    axes.set_title(f"against {column}", fontsize=10)
    axes.grid(True, which="major", alpha=0.25)


def _threshold(traces, column):
    """Where the axis turns linear: the power of ten below the first step of whoever stepped first."""
    steps = [x for trace in traces for x in trace.column(column)[1:2] if x > 0.0]
    return 10.0 ** floor(log10(min(steps, default=1.0)))
