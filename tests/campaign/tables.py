"""What a campaign prints."""

from collections import Counter, defaultdict
from statistics import median

MILD = "worse than zero"  # listed last: no false proof


def summary(reports, shown=40) -> str:
    """Counts, by kind and solver, and the violations with the command that repeats them."""
    runs = [(r.kind, r.loss, *run) for r in reports for run in r.runs]
    refused = sum("Error" in status for *_, status, _ in runs)
    violations = [
        (what, r.seed, r.kind, r.loss, solver, text) for r in reports for what, solver, text in r.violations
    ]
    seeds = f"seeds {reports[0].seed} … {reports[-1].seed}" if reports else "no seeds"
    lines = [
        f"{seeds}: {len(reports)} problems, {len(runs)} runs, {refused} refused, {len(violations)} violations"
    ]
    lines += ["", *_grid(runs), "", *_by_kind(violations)]
    for what, seed, kind, loss, solver, text in violations[:shown]:
        lines.append(f"{what:22s} {kind} {loss} {solver}: {text}")
        lines.append(f"{'':22s} python -m tests.campaign --only {seed}")
    if len(violations) > shown:
        lines.append(f"… and {len(violations) - shown} more")
    return "\n".join(lines)


def _grid(runs):
    """Runs by solver and kind."""
    counts = Counter((solver, f"{kind} {loss}".strip()) for kind, loss, solver, *_ in runs)
    columns = sorted({column for _, column in counts})
    yield f"{'runs':14s}" + "".join(f"{column:>16s}" for column in columns)
    for solver in sorted({solver for solver, _ in counts}):
        yield f"{solver:14s}" + "".join(f"{counts[solver, column] or '':>16}" for column in columns)


def _by_kind(violations):
    """Violations by what they are, and by whom."""
    groups = defaultdict(Counter)
    for what, _, kind, loss, solver, _ in violations:
        groups[what][f"{kind} {loss} {solver}"] += 1
    for what, who in sorted(groups.items(), key=lambda item: -sum(item[1].values())):
        most = ", ".join(f"{name} {count}" for name, count in who.most_common(8))
        yield f"{sum(who.values()):6d} {what}: {most}"
    yield ""


def convergence(rows) -> str:
    """How often each solver did not reach 1e-3 in 1,000 passes; rows of (solver, loss, kind, status, gap)."""
    cells = defaultdict(list)
    for solver, loss, _, status, gap in rows:
        cells[solver, loss].append((status, gap))
    lines = [
        f"{'solver':14s} {'loss':6s} {'runs':>6s} {'not':>5s} {'rate':>8s}  {'median gap':>10s}  ended as"
    ]
    for (solver, loss), found in sorted(cells.items()):
        missed = [(status, gap) for status, gap in found if status != "CONVERGED"]
        middle = f"{median(gap for _, gap in missed):10.2g}" if missed else f"{'':10s}"
        how = ", ".join(f"{status} {count}" for status, count in Counter(s for s, _ in missed).most_common())
        rate = len(missed) / len(found)
        lines.append(f"{solver:14s} {loss:6s} {len(found):6d} {len(missed):5d} {rate:8.2%}  {middle}  {how}")
    return "\n".join(lines)
