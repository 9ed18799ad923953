"""Cutting planes for the hinge loss: `CuttingPlane`."""

from fenchel.solvers.cuttingplane.solver import CuttingPlane

__all__ = ["CuttingPlane"]
