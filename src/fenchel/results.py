"""What a run ends with."""

from dataclasses import dataclass

import numpy as np

from fenchel.solvers.base import Start
from fenchel.trace import Certificate, Status, Trace


@dataclass(frozen=True)
class Result:
    """The best model found, how good it provably is, and how it was reached.

    w (d,) weights, b the free offset or offsets; mu the dual variables of a dual solver (else None), a warm
    start for the next constant of a path; centre: the offset it had them around.
    """

    w: np.ndarray
    b: float | np.ndarray
    status: Status
    certificate: Certificate
    trace: Trace
    mu: np.ndarray | None = None
    centre: np.ndarray | None = None

    @property
    def start(self) -> Start:
        """A warm start from here."""
        return Start(self.w, self.b, self.mu, trusted=True, centre=self.centre)
