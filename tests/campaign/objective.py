"""P with every output of every example listed, in NumPy's extended precision: no kernel of the library.

    P(w, b) = Σ_i m_i loss_i + λ/2 ‖w‖² + λ₁ ‖w‖₁
    log:    loss_i = Σ_y t_y (log Σ_z exp s_z − s_y)          hinge:  loss_i = max_y (s_y + cost_y − s_true)

Scores are s = F w + b, and where one output is the true one, differences to it: nothing large cancels.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

EXACT = np.longdouble
EPS, FINE = np.finfo(float).eps, np.finfo(EXACT).eps


def _solve(H, g):
    """H⁻¹ g, the shortest of several where H is singular."""
    try:
        return np.linalg.solve(H, g)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(H, g)[0]


@dataclass
class Listed:
    """Outputs one below the other: F (M, d) features, target and cost (M,), first (n,) where each begins.

    offsets (M, k): which of k free offsets each output has. mask (d,) bool: the weights there are.
    """

    F: np.ndarray
    target: np.ndarray
    first: np.ndarray
    weight: np.ndarray
    lam: float
    l1: float = 0.0
    hinge: bool = False
    cost: np.ndarray | None = None
    offsets: np.ndarray | None = None
    mask: np.ndarray | None = None

    def __post_init__(self):
        self.first = np.asarray(self.first, dtype=np.int64)
        self.F = np.asarray(self.F, EXACT) if self.mask is None else np.asarray(self.F, EXACT) * self.mask
        counts = np.diff(np.append(self.first, len(self.F)))
        self.owner = np.repeat(np.arange(len(self.first)), counts)
        self.mass = self.weight.astype(EXACT) / self.weight.astype(EXACT).sum()
        if self.offsets is None:
            self.offsets = np.zeros((len(self.F), 0))
        self.cost = np.zeros(len(self.F)) if self.cost is None else self.cost
        self.d = self.F.shape[1]

    @cached_property
    def A(self):
        """[F | offsets], less the row of the true output where there is one."""
        A = np.hstack([self.F, self.offsets.astype(EXACT)])
        hard = np.add.reduceat(self.target == 1.0, self.first)
        if not hard.all():
            return A
        return A - A[np.flatnonzero(self.target == 1.0)][self.owner]

    @cached_property
    def sizes(self):
        """|F|, with the offsets: for bounds on rounding."""
        return np.abs(np.hstack([self.F, self.offsets.astype(EXACT)]))

    @property
    def size(self):
        return self.A.shape[1]

    @cached_property
    def ridge(self):
        return np.repeat([EXACT(self.lam), EXACT(0.0)], [self.d, self.size - self.d])

    def join(self, w, b):
        """(w, b) as one vector."""
        free = np.zeros(self.size - self.d) + b if self.size > self.d else np.empty(0)
        return np.concatenate([np.asarray(w, EXACT), free.astype(EXACT)])

    # ---- the objective

    def value(self, u, heat=0.0):
        """P at u = (w, b); with heat > 0 a smooth P: max as a soft maximum, |w| as √(w² + heat²)."""
        penalty = 0.5 * (self.ridge @ u**2)
        if self.l1:
            penalty += self.l1 * np.sqrt(u[: self.d] ** 2 + heat**2).sum()
        return self.mass @ self._losses(self.A @ u, heat) + penalty

    def _losses(self, s, heat):
        if self.hinge and not heat:
            return np.maximum.reduceat(s + self.cost, self.first)
        if self.hinge:
            return heat * self._surplus((s + self.cost) / heat)[0]
        rest, top = self._surplus(s, apart=True)
        return np.add.reduceat(self.target * ((top - s) + rest), self.first)

    def _surplus(self, s, apart=False):
        """log Σ exp s of each example, and its softmax; or, by rows, log Σ exp (s − top), and top."""
        top = np.maximum.reduceat(s, self.first)[self.owner]
        e = np.exp(s - top)
        at = np.flatnonzero(s == top)
        best = at[np.concatenate([[True], np.diff(self.owner[at]) > 0])] if len(at) else at
        others = e.copy()
        others[best] = 0.0
        rest = np.log1p(np.add.reduceat(others, self.first))
        if apart:
            return rest[self.owner], top
        return rest + top[self.first], e / (1.0 + np.add.reduceat(others, self.first))[self.owner]

    def at_zero(self):
        """P(0) at the best offset: with log loss and free offsets the entropy of the labels' shares."""
        if self.size == self.d:
            return self.value(np.zeros(self.size, EXACT))
        u = np.zeros(self.size, EXACT)
        shares = self.offsets.T @ (self.mass[self.owner] * self.target)
        if len(shares) > 1:
            u[self.d :] = np.log(shares)
        elif len(self.F) > len(self.first):  # two classes; a single one has no offset worth the name
            rest = (1.0 - self.offsets[:, 0]) @ (self.mass[self.owner] * self.target)
            u[self.d :] = np.log(shares / rest)
        return self.value(u)

    def rounding(self, u):
        """Σ m_i max_y Σ_j |F_yj u_j|: in double precision a score is right to 2⁻⁵² times its own such sum."""
        return self.mass @ np.maximum.reduceat(self.sizes @ np.abs(u), self.first)

    def doubt(self, u):
        """What the extended precision of `value` itself may be off by."""
        return 8.0 * FINE * (self.mass @ np.maximum.reduceat(np.abs(self.A) @ np.abs(u), self.first))

    # ---- its minimum

    def polish(self, u):
        """A point at least as good as u: Newton's method, on a smooth P that is made ever less so."""
        best, value = u, self.value(u)
        rough = self.hinge or self.l1 > 0.0
        heats = max(float(value), 1e-300) * 10.0 ** -np.arange(1.0, 13.0, 1.5) if rough else [0.0]
        for heat in heats:
            u = self._newton(u, EXACT(heat), 6 if rough else 40)
            now = self.value(u)
            if now < value:
                best, value = u, now
        return best

    def _newton(self, u, heat, steps):
        value = self.value(u, heat)
        for _ in range(steps):
            direction, slope = self._direction(u, heat)
            if not slope < -1e-24 * value:
                return u
            u, value, moved = self._search(u, heat, direction, slope, value)
            if not moved:
                return u
        return u

    def _search(self, u, heat, direction, slope, value):
        """Halve the step until P falls."""
        step = EXACT(1.0)
        for _ in range(24):
            other = u + step * direction
            now = self.value(other, heat)
            if now < value + 1e-4 * step * slope:
                return other, now, True
            step *= 0.5
        return u, value, False

    def _direction(self, u, heat):
        """−H⁻¹g, and its product with g; H = Zᵀ Z + ridge with columns of Z scaled to length one."""
        s, inverse = self.A @ u, EXACT(1.0)
        if self.hinge:
            s, inverse = (s + self.cost) / heat, 1.0 / heat
        p = self._surplus(s)[1]
        g = self.A.T @ (self.mass[self.owner] * (p - self.target)) + self.ridge * u
        ridge = self.ridge.copy()
        if self.l1:
            w, root = u[: self.d], np.sqrt(u[: self.d] ** 2 + heat**2)
            g[: self.d] += self.l1 * w / root
            ridge[: self.d] += self.l1 * heat**2 / root**3
        Z, length = self._factor(p, inverse, ridge)
        H = Z.T @ Z
        H[np.diag_indices_from(H)] += (ridge / length**2).astype(float) + 1e-15
        scaled = g / length
        size = np.abs(scaled).max(initial=0.0)
        if not (np.isfinite(size) and size > 0.0 and np.isfinite(H).all()):
            return u, EXACT(0.0)
        direction = -_solve(H, (scaled / size).astype(float)).astype(EXACT) * size
        return direction / length, scaled @ direction

    def _factor(self, p, inverse, ridge):
        """Z, in double precision: √(m p) (A − mean of A), over the length of its columns; and those."""
        A, width = self._columns
        root, p = np.sqrt(self.mass[self.owner] * p * inverse), p.astype(A.dtype)
        mean = np.add.reduceat(p[:, None] * A, self.first)[self.owner]
        Z = (root / root.max()).astype(A.dtype)[:, None] * (A - mean)
        width = width * root.max()
        length = np.sqrt((Z**2).sum(axis=0) + ridge / width**2)
        length[length == 0.0] = 1.0
        return (Z / length.astype(A.dtype)).astype(float), length * width

    @cached_property
    def _columns(self):
        """A over the largest entries of its columns, double precision if none spans too much; and those."""
        sizes = np.abs(self.A)
        width = sizes.max(axis=0, initial=0.0)
        width[width == 0.0] = 1.0
        least = np.min(sizes / width, where=sizes > 0.0, initial=1.0)
        return (self.A / width).astype(float if least > 1e-30 else EXACT), width
