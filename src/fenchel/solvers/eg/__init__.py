"""Exponentiated gradient: `solver.py` for every structure, `chain.py` the fast lane of sequences."""

from fenchel.solvers.eg.solver import EG

__all__ = ["EG"]
