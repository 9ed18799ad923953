"""Drop-in classes for other packages' ones."""

from fenchel.compat.crf import CRF

__all__ = ["CRF"]
