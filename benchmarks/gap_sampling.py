"""How SDCA's certified gap falls by epoch, and how far its own estimate of the gap is off."""

from math import inf

EPOCHS = (1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300)  # shown; the last ends a run


def follow(problem, solver, target):
    """(passes, proven gap / P, true gap / P, estimate / true gap) after each epoch, until proven <= target.

    Proven are the best primal and dual values so far; true is the gap of the point the epoch ended at.
    """
    state, rows = solver.init(problem, None), []
    primal, dual = inf, -inf
    while len(rows) < EPOCHS[-1] and (not rows or rows[-1][1] > target):
        solver.step(problem, state)
        point = solver.point(problem, state)
        primal, dual = min(primal, point.primal), max(dual, point.dual)
        estimate = state.relative_gap_estimate * state.dual
        rows.append((state.passes, (primal - dual) / primal, point.gap / point.primal, estimate / point.gap))
    return rows


def passes_to(rows, targets):
    """(header, lines): of each sampling, the passes to each target."""
    lines = []
    for kind, epochs in rows.items():
        found = (next((row[0] for row in epochs if row[1] <= target), None) for target in targets)
        lines.append([kind, *("-" if passes is None else f"{passes:.0f}" for passes in found)])
    return ["sampling", *(f"passes to {target:.0e}" for target in targets)], lines


def by_epoch(rows):
    """(header, lines): of some epochs, the true gap and the estimate of each sampling."""
    last = max(map(len, rows.values()))
    shown = [k for k in EPOCHS if k < last] + [last]
    lines = [[str(k), *(cell for epochs in rows.values() for cell in _cells(epochs, k))] for k in shown]
    titles = ("true gap / P", "estimate / true")
    return ["epoch", *(f"{kind}: {title}" for kind in rows for title in titles)], lines


def _cells(epochs, k):
    return [f"{epochs[k - 1][2]:.1e}", f"{epochs[k - 1][3]:.2f}"] if k <= len(epochs) else ["-", "-"]
