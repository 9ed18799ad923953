"""The one who knows λ."""

from dataclasses import dataclass

import numpy as np

from fenchel._sparse import sum_of_squares


@dataclass(frozen=True)
class L2:
    """λ/2 ‖w‖². Its conjugate at u is ‖u‖²/(2λ), attained at w = u/λ. λ = 0 leaves no dual."""

    lam: float

    def value(self, w: np.ndarray) -> float:
        return 0.5 * self.lam * sum_of_squares(w)

    def gradient(self, w: np.ndarray) -> np.ndarray:
        return self.lam * w

    def weights(self, u: np.ndarray) -> np.ndarray:
        """The w that attains the conjugate at u."""
        return u / self.lam
