"""The sampling tree: frequencies, zero weights, changes, the largest."""

import numpy as np
import pytest

from fenchel import _sampling

WEIGHTS = np.array([0.5, 0.0, 3.0, 1.0, 0.0, 0.25, 0.0])


def frequencies(tree, n, draws=20_000):
    """How often each index comes at evenly spaced fractions: exact up to one draw per boundary."""
    counts = np.zeros(n)
    for u in (np.arange(draws) + 0.5) / draws:
        counts[_sampling.draw(tree, u)] += 1
    return counts / draws


def test_indices_are_drawn_in_proportion_to_their_weights():
    tree = _sampling.make_tree(WEIGHTS, False)
    assert tree[1] == WEIGHTS.sum()
    np.testing.assert_allclose(frequencies(tree, 7), WEIGHTS / WEIGHTS.sum(), atol=2e-4)


def test_an_index_of_weight_zero_is_never_drawn():
    """Not at the borders between weights either, nor where rounding has spoilt the sums."""
    tree = _sampling.make_tree(WEIGHTS, False)
    borders = np.cumsum(WEIGHTS)[:-1] / WEIGHTS.sum()
    for u in [0.0, *borders, *np.nextafter(borders, 0.0), 1.0 - 2.0**-53]:
        assert WEIGHTS[_sampling.draw(tree, u)] > 0.0
    tiny = np.array([1e-17, 0.0, 1.0, 0.0, 1e-17, 0.0])
    tree = _sampling.make_tree(tiny, False)
    for u in (0.0, 0.5, 1.0 - 2.0**-53):
        assert tiny[_sampling.draw(tree, u)] > 0.0


def test_changed_weights_are_those_of_a_tree_made_anew():
    tree = _sampling.make_tree(WEIGHTS, False)
    changed = WEIGHTS.copy()
    rng = np.random.default_rng(0)
    for i, weight in zip(rng.integers(7, size=100), rng.uniform(0.0, 5.0, size=100), strict=True):
        changed[i] = weight
        _sampling.set_weight(tree, i, weight, False)
    np.testing.assert_array_equal(tree, _sampling.make_tree(changed, False))
    np.testing.assert_allclose(frequencies(tree, 7), changed / changed.sum(), atol=4e-4)


def test_the_largest_is_found_and_the_first_of_equals():
    weights = WEIGHTS.copy()
    tree = _sampling.make_tree(weights, True)
    rng = np.random.default_rng(1)
    for i, weight in zip(rng.integers(7, size=100), rng.integers(0, 4, size=100), strict=True):
        weights[i] = weight
        _sampling.set_weight(tree, i, float(weight), True)
        assert _sampling.find_largest(tree) == np.argmax(weights)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_every_size_of_tree(n):
    weights = np.arange(1.0, n + 1.0)
    tree = _sampling.make_tree(weights, False)
    assert _sampling.draw(tree, 0.0) == 0
    assert _sampling.draw(tree, 1.0 - 2.0**-53) == n - 1
    assert _sampling.find_largest(_sampling.make_tree(weights, True)) == n - 1


def test_kernels_equal_their_python_functions():
    tree = _sampling.make_tree(WEIGHTS, False)
    np.testing.assert_array_equal(tree, _sampling.make_tree.py_func(WEIGHTS, False))
    for u in np.linspace(0.0, 0.999, 50):
        assert _sampling.draw(tree, u) == _sampling.draw.py_func(tree, u)
