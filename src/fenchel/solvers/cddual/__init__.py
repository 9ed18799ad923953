"""Dual coordinate descent: `CDDual`."""

from fenchel.solvers.cddual.solver import CDDual

__all__ = ["CDDual"]
