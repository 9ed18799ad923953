"""What a result must show, whatever was asked of the solver."""

from math import isfinite, isnan

import numpy as np

from fenchel.trace import Status

from .objective import EPS

DIGITS = 1e-10  # of the objective, beside what double precision must lose in the scores
PROOF = 1e-12  # of the optimum: a dual further above it is false
LEAST = 1e-300  # numbers below it have no digits
SCORES = 64.0  # times 2⁻⁵² Σ|terms|: the most that scores in double precision are granted


def check(listed, run, best, doubt):
    """[(what, sentence)] of everything wrong with a run that returned; best: the least P known, ± doubt."""
    result = run.result
    found = list(_finite(result))
    if found:
        return found
    u = listed.join(result.w, result.b)
    found += _objective(listed, result, u)
    found += _bound(result, best, doubt)
    found += _gap(result, best, doubt, run.tol)
    found += _trace(result, best, doubt)
    found += _mask(listed, result)
    zero = listed.at_zero()
    if run.value > zero * (1.0 + PROOF) + doubt + LEAST:
        found.append(("worse than zero", f"P = {run.value:.12g} of the model, {zero:.12g} of w = 0"))
    return found


def _finite(result):
    """Weights are numbers; nothing infinite has converged."""
    if not (np.isfinite(result.w).all() and np.isfinite(result.b).all()):
        yield "not finite", f"weights or offset contain nan or infinity, {result.status.value}"
    elif not isfinite(result.certificate.primal):
        huge = result.certificate.primal
        if result.status is Status.CONVERGED:
            yield "converged at infinity", f"objective {huge}, dual {result.certificate.dual}"
        else:
            yield "not finite", f"objective {huge}, {result.status.value}"


def _objective(listed, result, u):
    """(1) The certificate's objective is that of the weights."""
    value, stated = listed.value(u), result.certificate.primal
    allowed = DIGITS * value + SCORES * EPS * listed.rounding(u) + LEAST
    if not abs(value - stated) <= allowed:
        yield "objective", f"stated {stated!r}, is {value:.17g}: off by {stated - value:.3g} > {allowed:.2g}"


def _bound(result, best, doubt):
    """(2) No dual is above the optimum."""
    dual = result.certificate.dual
    if not isnan(dual) and dual > best * (1.0 + PROOF) + doubt:
        yield (
            "false dual",
            f"dual {dual!r} above P = {best:.17g} by {(dual - best) / max(best, 1e-300):.3g} of it",
        )


def _gap(result, best, doubt, tol):
    """(3) The gap is what is proven: not negative, no less than the excess, and small where converged."""
    certificate = result.certificate
    if isnan(certificate.gap):
        return
    rounding = PROOF * abs(certificate.primal) + doubt
    difference = certificate.primal - certificate.dual
    if certificate.gap < 0.0 or certificate.gap < (1.0 - DIGITS) * difference - rounding:
        yield "gap", f"gap {certificate.gap!r}, but primal − dual is {difference!r}"
    excess = certificate.primal - best
    if excess > certificate.gap + rounding:
        yield "gap too small", f"gap {certificate.gap!r}, but P − best P = {excess:.6g}"
    if result.status is Status.CONVERGED and excess > tol * certificate.primal + rounding:
        yield "not converged", f"P − best P = {excess:.6g} > tol · P = {tol * certificate.primal:.6g}"


def _trace(result, best, doubt):
    """(6) Every row: dual ≤ primal, dual ≤ optimum ≤ primal."""
    for k, row in enumerate(result.trace):
        rounding = PROOF * abs(row.primal) + doubt
        if row.dual > row.primal + rounding:
            yield "row", f"row {k}: dual {row.dual!r} above primal {row.primal!r}"
            return
        if row.dual > best * (1.0 + PROOF) + doubt and not result.certificate.dual > best:
            yield "row", f"row {k}: dual {row.dual!r} above the optimum {best:.17g}"
            return


def _mask(listed, result):
    """Weights that are not there are zero."""
    if listed.mask is not None and np.any(result.w[~listed.mask]):
        yield "mask", f"{np.count_nonzero(result.w[~listed.mask])} weights that are not there are not zero"
