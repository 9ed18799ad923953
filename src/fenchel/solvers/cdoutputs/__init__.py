"""Dual coordinate descent over cached outputs, for the hinge loss: `CDOutputs`."""

from fenchel.solvers.cdoutputs.solver import CDOutputs

__all__ = ["CDOutputs"]
