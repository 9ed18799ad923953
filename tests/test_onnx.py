"""ONNX: onnxruntime says what the model says."""

import sys

import numpy as np
import pytest

import fenchel
from commands import fails, run
from fenchel import LinearSVC, LogisticRegression

RNG = np.random.default_rng(4)
X = RNG.normal(size=(80, 5))
SCORES = X @ RNG.normal(size=(5, 4)) + 0.3 * RNG.normal(size=(80, 4))


def computed(path):
    """What onnxruntime makes of X: a dict by name of the output."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": X}), strict=True)), session.get_modelmeta()


@pytest.mark.parametrize("labels", [["ja", "nein"], [False, True], [3, 7, 10], ["a", "b", "ß", "d"]], ids=str)
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_onnxruntime_says_the_same(kind, labels, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    y = np.array(labels)[SCORES[:, : len(labels)].argmax(axis=1)]
    model = kind().fit(X, y)
    model.to_onnx(tmp_path / "model.onnx")
    found, notes = computed(tmp_path / "model.onnx")
    assert found["label"].tolist() == model.predict(X).tolist()
    assert notes.custom_metadata_map["certificate"] == str(model.certificate_)
    if kind is LogisticRegression:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=1e-12)
    else:
        scores = found["scores"] if len(labels) > 2 else found["scores"][:, 1]
        np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-12, atol=1e-12)


def test_convert_to_onnx_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = LogisticRegression().fit(X, SCORES.argmax(axis=1))
    model.save("model")
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'fenchel[onnx]'" in fails("convert", "model", "graph", "--to", "onnx")
    assert not (tmp_path / "graph").exists()
    monkeypatch.undo(), monkeypatch.chdir(tmp_path)
    pytest.importorskip("onnx", reason="onnx is not installed")
    assert run("convert", "model", "graph", "--to", "onnx").exit_code == 0
    assert computed("graph")[0]["label"].tolist() == model.predict(X).tolist()
    fenchel.MaxEnt().fit([["a"], ["b"]], [0, 1]).save("events")
    assert "no counterpart in onnx" in fails("convert", "events", "graph", "--to", "onnx")
