"""Model files that lie: an error that names the file, and no read beyond an array."""

import json

import numpy as np
import pytest
from safetensors.numpy import save

import fenchel
from commands import fails, run
from fenchel.io.models import ModelError
from hostile_models import chain_samples, events_samples, flat_samples, tagger_samples
from mutations import open_model


@pytest.fixture
def write(tmp_path):
    def write(content, name="file"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    return write


def changed(sample, settings=(), facts=(), arrays=()):
    """The bytes of a model file with some values replaced."""
    values, header = open_model(sample)
    for field, new in (("settings", settings), ("facts", facts)):
        header[field] = json.dumps(json.loads(header[field]) | dict(new))
    return save({k: np.ascontiguousarray(a) for k, a in (values | dict(arrays)).items()}, metadata=header)


def refuse(path):
    with pytest.raises(ModelError) as caught:
        fenchel.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


@pytest.mark.parametrize("wrong", ["[" * 100_000, "9" * 5000, "[]", "5", "null", '"text"'])
@pytest.mark.parametrize("field", ["settings", "facts"])
def test_a_header_of_the_wrong_kind(write, field, wrong):
    values, header = open_model(flat_samples()[0])
    refuse(write(save(values, metadata=header | {field: wrong})))


@pytest.mark.parametrize(
    "facts",
    [
        {"classes": "ab"},
        {"classes": ["a"]},
        {"classes": []},
        {"classes": ["b", "a"]},
        {"classes": ["a", "a"]},
        {"classes": ["a", None]},
        {"classes": ["a", ["b"]]},
        {"classes": [0.5, 1.5], "classes_dtype": "<i8"},
        {"classes": [10**30, 1], "classes_dtype": "<i8"},
        {"classes": ["long", "longer"], "classes_dtype": "<U1"},
        {"classes_dtype": "<U999999999"},
        {"classes_dtype": "1" * 5000},
        {"classes_dtype": "O"},
        {"classes_dtype": [["a", "<f8"]]},
        {"n_features_in": -3},
        {"n_features_in": "3"},
        {"n_features_in": 10**400},
        {"feature_names_in": ["a", "b"]},
        {"feature_names_in": "abc"},
        {"n_iter": float("inf")},
        {"n_iter": float("nan")},
        {"certificate": {}},
        {"certificate": {"primal": 10**400}},
        {"read_as": [1]},
        {"read_as": {"format": 5}},
    ],
    ids=str,
)
def test_facts_that_no_model_has(write, facts):
    refuse(write(changed(flat_samples()[0], facts=facts)))


@pytest.mark.parametrize(
    "settings",
    [
        {"solver": "none such"},
        {"solver": {"name": "cd-dual", "options": {"odd": 1}}},
        {"solver": {"name": "cd-dual", "options": 5}},
        {"solver": {"name": ["cd-dual"], "options": {}}},
        {"solver": 7},
        {"C": "much"},
        {"C": {"a": 1}},
        {"tol": float("nan")},
        {"n_jobs": "a"},
        {"odd": 1},
        {"class_weight": [1, 2]},
    ],
    ids=str,
)
def test_settings_that_no_model_has(write, settings):
    refuse(write(changed(flat_samples()[0], settings=settings)))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("samples", "name"),
    [
        (flat_samples, "coef"),
        (flat_samples, "intercept"),
        (events_samples, "weights"),
        (chain_samples, "weights"),
        (tagger_samples, "weights"),
    ],
)
def test_weights_that_are_not_finite(write, samples, name, wrong):
    sample = samples()[0]
    weights = np.array(open_model(sample)[0][name])
    weights.flat[0] = wrong
    assert "not finite" in refuse(write(changed(sample, arrays={name: weights})))


def test_sizes_of_a_chain_that_cancel_each_other_out(write):
    sample = chain_samples()[0]
    A, B = json.loads(open_model(sample)[1]["facts"])["sizes"]
    K = 4
    for sizes in ([A + K, B - 1], [A, B, 0], [float("nan"), B], None):
        assert "sizes are" in refuse(write(changed(sample, facts={"sizes": sizes})))


@pytest.mark.parametrize("banned", [[["VERB", "none such"]], [["VERB"]], "VERB", [[["a", "b"], "c"]], 5])
def test_a_chain_that_bans_what_it_does_not_know(write, banned):
    refuse(write(changed(chain_samples()[0], settings={"banned": banned})))


@pytest.mark.parametrize("settings", [{"beam": "5"}, {"beam": 0}, {"beam": float("inf")}, {"rare": -1}])
def test_a_tagger_with_a_wrong_setting(write, settings):
    refuse(write(changed(tagger_samples()[0], settings=settings)))


def test_a_tagger_whose_columns_are_exchanged_would_read_beyond_its_dictionary(write):
    sample = tagger_samples()[0]
    arrays = {name: np.array(array) for name, array in open_model(sample)[0].items()}
    word, column = int(np.argmax(arrays["frequent"] >= 0)), arrays["previous"].copy()
    place = int(np.argmax(column >= 0))
    column[place], arrays["frequent"][word] = arrays["frequent"][word], column[place]
    exchanged = {"frequent": arrays["frequent"], "previous": column}
    assert "not numbered from 0 on" in refuse(write(changed(sample, arrays=exchanged)))


def test_a_tagger_whose_dictionary_leaves_no_tag(write):
    dictionary = np.zeros_like(open_model(tagger_samples()[0])[0]["dictionary"])
    assert "without a tag" in refuse(write(changed(tagger_samples()[0], arrays={"dictionary": dictionary})))


@pytest.mark.parametrize("columns", [-1, float("nan"), "3", True, 10**12])
def test_a_chain_of_numbered_columns_that_lies_about_them(write, columns):
    refuse(write(changed(chain_samples()[3], facts={"source": {"kind": "numbered", "columns": columns}})))


def test_a_model_saved_under_a_name_in_gz_is_loaded_again(tmp_path, write):
    model = fenchel.load(write(flat_samples()[0]))
    model.save(tmp_path / "model.gz")
    assert (tmp_path / "model.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert (fenchel.load(tmp_path / "model.gz").coef_ == model.coef_).all()


def test_a_damaged_model_is_one_sentence(write):
    values, header = open_model(flat_samples()[0])
    path = write(save(values, metadata=header | {"facts": "[" * 100_000}))
    for command in (("predict", path, "x"), ("evaluate", path, "x"), ("inspect", path)):
        assert fails(*command) == f"{path}: the header of the model file is damaged (nested too deep)"


@pytest.mark.parametrize(
    "read_as", [{"format": "none such"}, {"odd": True, "format": "opennlp"}, {"odd": "x"}]
)
def test_a_model_whose_format_is_unknown_asks_for_it(write, read_as):
    path = write(changed(events_samples()[0], facts={"read_as": read_as}), "model")
    data = write("a tag=NN\nb plain\n", "data")
    assert fails("predict", path, data).endswith("give --format")
    assert run("predict", path, data, "--format", "opennlp").exit_code == 0
