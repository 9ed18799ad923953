"""Limited-memory BFGS, with an L1 term OWL-QN: `LBFGS`."""

from fenchel.solvers.lbfgs.solver import LBFGS

__all__ = ["LBFGS"]
