"""What a label structure offers: to batch solvers methods on arrays, to block solvers kernels.

A block kernel is declared here once and implemented by each structure for its own named tuple of
arrays ("blocks"). A solver's epoch calls it by name; Numba picks the implementation by the type of the
named tuple, compiles one specialised epoch per structure, and caches it.

Conventions of the kernels. One example i at a time. The block of an example is its vector of marginals,
μ_i, `blocks.size` numbers long; s holds the scores of the same outcomes. The weights v are the augmented
vector of `design.py`: penalised weights, then free coordinates, then bookkeeping of the centring.
"""

import functools
import inspect

from numba.extending import overload

from fenchel._math import REORDER


def block_kernel(declaration):
    """Declare a kernel that each structure implements for its own named tuple.

    The result can be called from Python (it looks the type up) and from jitted code (Numba does).
    """
    implementations = {}

    def call(blocks, *args):
        return implementations[type(blocks)](blocks, *args)

    def choose(blocks, *args):
        return implementations.get(getattr(blocks, "instance_class", None))

    functools.update_wrapper(call, declaration)
    choose.__signature__ = inspect.signature(declaration)
    overload(call, strict=False, jit_options={"nogil": True, "fastmath": REORDER})(choose)
    call.implement = lambda kind: lambda kernel: implementations.setdefault(kind, kernel)
    return call


@block_kernel
def block_scores(blocks, i, v, s):
    """s = A_i w, free coordinates included; s written."""


@block_kernel
def block_add(blocks, i, step, delta, v):
    """v += step · A_iᵀ delta on the penalised weights; v written."""


@block_kernel
def block_add_free(blocks, i, step, delta, v):
    """v += step · A_iᵀ delta on the free coordinates; v written."""


@block_kernel
def block_squared_norm(blocks, i, delta):
    """‖A_iᵀ delta‖² over the penalised weights."""


@block_kernel
def block_move(blocks, i, step, delta, s, moved):
    """moved = s + step · A_i A_iᵀ delta, free coordinates included: scores after such an update; written."""


@block_kernel
def block_radius(blocks, i):
    """R_i = max over outputs y of ‖F(x_i, y) − F(x_i, y_i)‖², lepriol2018 (22) and Appendix C."""


@block_kernel
def block_catch_up(blocks, i, now, drift, g, seen, v):
    """For each weight j of example i: v_j −= g_j (drift[now] − drift[seen_j]), seen_j = now. v, seen written.

    The postponed part of a dense update v ← v − step·g (just-in-time updates).
    """


@block_kernel
def block_target(blocks, i, y):
    """y = y_i, the empirical marginals; y written."""


@block_kernel
def block_cost(blocks, i, cost):
    """cost = Hamming cost of each outcome of example i; written."""


@block_kernel
def block_marginals(blocks, i, s, mu):
    """μ = marginals at the scores s (written); returns log Z(s)."""


@block_kernel
def block_argmax(blocks, i, s, mu):
    """μ = the outcome of largest score as a 0/1 vector (written); returns its score."""


@block_kernel
def block_entropy(blocks, i, mu):
    """H(μ_i)."""


@block_kernel
def block_kl(blocks, i, mu, s):
    """KL(μ_i ‖ marginals at s), never negative."""


@block_kernel
def block_entropy_slopes(blocks, i, mu, delta, gamma):
    """First and second derivative of γ ↦ H(μ_i + γ δ_i)."""
