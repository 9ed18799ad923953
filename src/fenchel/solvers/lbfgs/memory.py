"""What L-BFGS remembers of the curvature: its last steps and the changes of the gradient along them.

The two-loop recursion touches every vector of the memory twice, one after the other, and each time the vector
it updates. Here its numbers come from inner products instead: one pass over the memory for the products with
the newest pair and the gradient, one for the sum of its vectors (Chen, Wang and Zhou 2014). At millions of
weights, where memory is what takes the time, that is half the traffic.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg.lapack import dtrtrs

from fenchel.solvers.lbfgs.vectors import combination, difference, products


@dataclass
class Pairs:
    """At most `memory` pairs s = w' − w, y = ∇' − ∇, in the `rows` of two arrays, oldest first."""

    memory: int
    dim: int
    rows: list = field(default_factory=list)

    def __post_init__(self):
        # Memory the system gives only where it is written to: a run of three steps takes three rows.
        self.steps, self.changes = np.empty((2, self.memory, self.dim))
        self.sy, self.yy = np.zeros(
            (2, self.memory, self.memory)
        )  # ⟨s_i, y_j⟩ for i not newer, and ⟨y_i, y_j⟩

    def __len__(self) -> int:
        return len(self.rows)

    def forget(self) -> None:
        self.rows.clear()

    def remember(self, design, before, after) -> None:
        """Add the pair between two evaluations in place of the oldest, unless it shows no curvature."""
        row = len(self.rows)
        if row == self.memory:
            row = self.rows.pop(0)
        elif row in self.rows:  # one was left out after all rows had been taken
            row = min(set(range(self.memory)) - set(self.rows))
        product, square = difference(design, before, after, self.steps[row], self.changes[row])
        if product > 1e-16 * square:
            self.rows.append(row)
            self.sy[row, row], self.yy[row, row] = product, square

    def direction(self, design, gradient) -> tuple[np.ndarray, float]:
        """−H · gradient, H the approximate inverse Hessian, and its product with the gradient."""
        rows, along, scale = self._taken, np.zeros((2, 0)), 1.0
        if self.rows:
            found, newest = products(design, rows, self.steps, self.changes, gradient), self.rows[-1]
            self.sy[rows, newest] = found[2]
            self.yy[rows, newest] = self.yy[newest, rows] = found[3]
            along, scale = self._coefficients(*found[:2])
        return combination(design, rows, self.steps, self.changes, along, scale, gradient)

    @property
    def _taken(self) -> slice | np.ndarray:
        """The rows as an index; those of the first steps are in order, and a slice of them is no copy."""
        count = len(self.rows)
        return slice(count) if self.rows == list(range(count)) else np.array(self.rows, dtype=np.uint64)

    def _coefficients(self, sg, yg):
        """along (2, pairs) and γ of H∇ = γ ∇ + Σ along[0] s + Σ along[1] y.

        Byrd, Nocedal and Schnabel (1994), (2.6): with R = ⟨s_i, y_j⟩ for i not newer, D its diagonal, p = R⁻¹
        ⟨s, ∇⟩, the first are R⁻ᵀ((D + γ ⟨y, y⟩) p − γ ⟨y, ∇⟩), the others −γ p.
        """
        rows = self._taken
        sy, yy = self.sy[rows][:, rows], self.yy[rows][:, rows]
        diagonal = sy.diagonal()
        scale = diagonal[-1] / yy[-1, -1]
        p = dtrtrs(sy, sg)[0]
        rest = diagonal * p + scale * (yy @ p - yg)
        return np.array([dtrtrs(sy, rest, trans=1)[0], -scale * p]), scale
