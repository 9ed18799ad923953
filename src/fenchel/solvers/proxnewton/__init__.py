"""Newton's method for weights that may be exactly zero."""

from fenchel.solvers.proxnewton.solver import ProxNewton

__all__ = ["ProxNewton"]
