"""CRFsuite's binary models: read, written, and refused where they are damaged or cannot hold a model."""

import struct

import numpy as np
import pytest

import fenchel
from commands import fails, run
from fenchel import ChainCRF
from fenchel.compat import CRF
from fenchel.features.templates import parse_template
from fenchel.features.tokens import Tokens
from fenchel.io.lcrf import LinearChain, hash_keys, read_lcrf, write_lcrf
from fenchel.io.models import ModelError
from hostile_cases import small_chain
from test_compat import make_corpus


@pytest.fixture
def pycrfsuite():
    reason = "python-crfsuite, which these tests compare with, is not installed"
    return pytest.importorskip("pycrfsuite", reason=reason)


@pytest.fixture(scope="module")
def model():
    return CRF(c1=0.05, c2=0.05).fit(*make_corpus())


def test_the_hash_is_lookup3():
    """The value that Jenkins gives in lookup3.c."""
    assert hash_keys([b"Four score and seven years ago"]).tolist() == [0x17770551]


@pytest.mark.parametrize("n_labels, n_attributes", [(1, 0), (1, 1), (3, 12), (5, 300)])
def test_what_is_written_is_read(tmp_path, n_labels, n_attributes):
    before = small_chain(n_labels, n_attributes)
    write_lcrf(tmp_path / "m", before)
    after = read_lcrf(tmp_path / "m")
    kept = before.states.any(axis=1)
    assert after.labels == before.labels
    assert after.attributes == [name for name, k in zip(before.attributes, kept, strict=True) if k]
    np.testing.assert_array_equal(after.states, before.states[kept])
    np.testing.assert_array_equal(after.transitions, before.transitions)


# ---- CRFsuite itself


def test_a_model_of_crfsuite_is_written_again_byte_for_byte(pycrfsuite, tmp_path):
    trainer = pycrfsuite.Trainer(verbose=False)
    for x, labels in zip(*make_corpus(), strict=True):
        trainer.append(x, labels)
    trainer.set_params({"c1": 0.1, "c2": 0.1})
    trainer.train(str(tmp_path / "theirs"))
    write_lcrf(tmp_path / "ours", read_lcrf(tmp_path / "theirs"))
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_the_tagger_of_crfsuite_gives_the_same_tags(pycrfsuite, tmp_path):
    X, y = make_corpus()
    path = tmp_path / "model.crfsuite"
    model = CRF(c1=0.05, c2=0.05, model_filename=str(path)).fit(X, y)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    assert tagger.labels() == model.classes_
    assert [tagger.tag(x) for x in X] == model.predict(X).tolist()
    tagger.set(X[-1])
    assert np.log(tagger.probability(y[-1])) == pytest.approx(model.log_probability(X, y)[-1], abs=1e-9)


# ---- without it


def test_on_the_command_line_a_model_of_crfsuite_tags_once_it_is_converted(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = [[["bias", f"word:{token['word']}"] for token in x] for x in make_corpus()[0]]
    sentences = ("".join(f"?\t{bias}\t{word.replace(':', chr(92) + ':')}\n" for bias, word in x) for x in X)
    (tmp_path / "data").write_text("\n".join(sentences))
    model.to_crfsuite("theirs")
    assert "fenchel convert --to fenchel" in fails("predict", "theirs", "data")
    assert run("convert", "theirs", "ours", "--to", "fenchel").exit_code == 0
    printed = run("predict", "ours", "data").stdout.split()
    assert printed == [label for labels in model.predict(X) for label in labels]
    assert "made by another program" in run("inspect", "ours").stdout


def test_a_file_that_is_there_predicts_without_fit(model, tmp_path):
    X, y = make_corpus()
    model.to_crfsuite(tmp_path / "m")
    for again in (CRF(model_filename=tmp_path / "m"), fenchel.load(tmp_path / "m")):
        assert again.predict(X).tolist() == model.predict(X).tolist()
        assert again.state_features_ == model.state_features_
        assert again.transition_features_ == model.transition_features_
        np.testing.assert_allclose(again.log_probability(X, y), model.log_probability(X, y))
        assert str(again.certificate_) == "made by another program: certificate none: not trained here"


def test_save_and_load(model, tmp_path):
    X, y = make_corpus()
    model.save(tmp_path / "m")
    again = fenchel.load(tmp_path / "m")
    assert isinstance(again, CRF) and again.get_params() == model.get_params()
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.certificate_ == model.certificate_
    np.testing.assert_array_equal(again.log_probability(X, y), model.log_probability(X, y))


SENTENCES = [[("a", "x"), ("b", "y")], [("b", "x"), ("a", "y")]]


@pytest.mark.parametrize(
    "settings, labels, message",
    [
        ({"bias": True}, "PQ", "no weight of a label alone; fit with bias=False"),
        ({"boundaries": True}, "PQ", "no weights of first and last labels; fit with boundaries=False"),
        ({"banned": [("Q", "P")]}, "PQ", "cannot ban transitions; fit with banned=None"),
        ({"template": parse_template("U:%x[0,0]\nB:%x[0,1]\n")}, "PQ", "no attributes of pairs of labels"),
        ({}, (1, 2), "labels that are strings, not 1"),
        ({}, ("P\0x", "Q"), "cannot hold the name"),
    ],
)
def test_what_crfsuite_cannot_hold_is_refused(tmp_path, settings, labels, message):
    model = ChainCRF(**({"template": parse_template("U:%x[0,0]\nB\n")} | settings))
    data = model.encode_training(Tokens.from_sentences(SENTENCES), [list(labels)] * 2)
    model.set_weights(data, np.ones(model.problem(data).dim))
    with pytest.raises(ValueError, match=message):
        model.to_crfsuite(tmp_path / "m")
    assert not (tmp_path / "m").exists()


# ---- damage

FIELDS = {"size": 4, "version": 12, "labels": 20, "attributes": 24, "FEAT": 28, "names": 32, "LFRF": 40}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [0, 3, 2**31, 2**32 - 1])
def test_every_number_of_the_header_is_looked_at(tmp_path, field, value):
    write_lcrf(tmp_path / "m", small_chain(2, 9))
    content = bytearray((tmp_path / "m").read_bytes())
    struct.pack_into("<I", content, FIELDS[field], value)
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelError, match=r"/m: not a model of CRFsuite, or a damaged one \("):
        read_lcrf(tmp_path / "m")


def test_names_that_come_twice_are_refused(tmp_path):
    write_lcrf(tmp_path / "m", LinearChain(["a", "b"], ["x", "x"], np.ones((2, 2)), np.zeros((2, 2))))
    with pytest.raises(ModelError, match="comes twice"):
        fenchel.load(tmp_path / "m")
