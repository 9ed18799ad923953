"""What is shown of a trace: its distance from the optimum, row by row."""

from math import inf, isfinite, isnan

from fenchel.trace import Trace

GAP, GRADIENT = "relative gap", "relative gradient norm"


def measure(trace: Trace) -> str:
    """What the distance of this run is: without a regulariser there is no gap, and the gradient must do."""
    return GRADIENT if all(isnan(gap) for gap in trace.column("gap")) else GAP


def distances(trace: Trace) -> list[float]:
    """One number per row, the one `tol` is about: gap / best objective so far, or ‖∇P‖ / ‖∇P(first)‖."""
    if measure(trace) == GRADIENT:
        norms = trace.column("gradient_norm")
        return [0.0 if norms[0] == 0.0 else norm / norms[0] for norm in norms]
    best, relative = inf, []
    for row in trace:
        best = min(best, row.primal)
        relative.append(_relative(row.gap, best))
    return relative


def _relative(gap, best):
    """gap / best; a diverged run, whose objective is no number, is infinitely far."""
    if not isfinite(best):
        return inf
    return gap / best if best > 0.0 else 0.0
