"""The averaged perceptron: as a plain one in Python does it, and honest about what it does not prove."""

from math import isnan

import numpy as np
import pytest

import fenchel
from chains import parts_of, sequences
from fenchel import ChainCRF, problems, solve
from fenchel.compat import CRF
from fenchel.trace import Status
from test_compat import make_corpus

A, K = 4, 3


def naive(X, y, passes, seed):
    """Collins 2002: the mean of the weights after each visit."""
    W, T = np.zeros((A, K)), np.zeros((K, K))
    total, visits, rng = (np.zeros((A, K)), np.zeros((K, K))), 0, np.random.default_rng(seed)
    for _ in range(passes):
        for i in rng.permutation(len(X)):
            every = sequences(len(X[i]), K)
            s = np.concatenate([(X[i] @ W).ravel(), T.ravel()])
            best = every[np.argmax(parts_of(every, K, 0) @ s)]
            for labels, sign in ((y[i], 1.0), (best, -1.0)):
                for t, label in enumerate(labels):
                    W[:, label] += sign * X[i][t]
                    if t > 0:
                        T[labels[t - 1], label] += sign
            for so_far, part in zip(total, (W, T), strict=True):
                so_far += part
            visits += 1
    return np.concatenate([part.ravel() / visits for part in total])


def test_it_is_the_mean_of_a_plain_perceptron():
    rng = np.random.default_rng(3)
    lengths = [1, 3, 4, 2, 5, 3, 2, 4]
    X, y = [rng.normal(size=(T, A)) for T in lengths], [rng.integers(K, size=T) for T in lengths]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    problem = problems.chain(np.vstack(X), np.concatenate(y), starts, C=1.0, labels=K)
    result = solve(problem, fenchel.solvers.Perceptron(seed=5), max_passes=3)
    np.testing.assert_allclose(result.w, naive(X, y, 3, 5), atol=1e-12)
    assert result.status is Status.MAX_PASSES and result.certificate.passes == 3
    assert [isnan(row.gap) for row in result.trace] == [True] * len(result.trace)
    assert str(result.certificate).startswith(
        "stopped at the limit of passes: certificate none: not an optimum"
    )
    assert result.certificate.radius == np.inf


def test_it_ends_where_all_is_right_and_can_be_saved(tmp_path):
    X, y = make_corpus()
    X = [
        [token | {"label": label} for token, label in zip(*pair, strict=True)]
        for pair in zip(X, y, strict=True)
    ]
    model = CRF("ap").fit(X, y)  # without a warning
    assert model.certificate_.status is Status.FINISHED and model.score(X, y) == 1.0
    assert model.certificate_.passes < 100
    model.save(tmp_path / "m")
    again = fenchel.load(tmp_path / "m")
    assert again.certificate_ == model.certificate_ and again.predict(X).tolist() == model.predict(X).tolist()


def test_it_learns_from_weights_and_masks():
    X, y = make_corpus()
    model = CRF("ap", max_iterations=10).fit(X, y)
    assert model.score(X, y) > 0.8 and model.certificate_.missing == "not an optimum"
    assert ("word:the", "V") not in model.state_features_  # never seen together
    with pytest.warns(UserWarning, match="CRF ignores c2, tol: without meaning here"):
        CRF("ap", c2=0.5, tol=1e-3, max_iterations=1).fit(X, y)


def test_other_models_refuse_it():
    with pytest.raises(ValueError, match="'perceptron' cannot train a binary model"):
        fenchel.LogisticRegression(solver="perceptron").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="'perceptron' cannot train a chain model"):
        ChainCRF(solver="perceptron", c1=1.0, c2=1.0).fit([[["a"]], [["b"]]], [["P"], ["Q"]])
