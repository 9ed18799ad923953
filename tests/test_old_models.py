"""Models that fenchels of the past have saved: they load for good, and say what they said then."""

import json

import numpy as np
import pytest
from safetensors.numpy import save

import fenchel
from fenchel.io.models import FORMATS, ModelError
from fenchel.saved import SAVED
from models.make import HERE, MODELS, answers
from mutations import open_model

EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))


def kept(name):
    return HERE / f"{name}.fenchel"


def test_there_is_a_model_of_every_class_in_every_format():
    headers = [open_model(path.read_bytes())[1] for path in HERE.glob("*.fenchel")]
    found = {(header["class"], header["format_version"]) for header in headers}
    assert found == {(name, number) for name in SAVED for number in FORMATS}
    assert sum(path.stat().st_size for path in HERE.iterdir() if path.is_file()) < 200_000


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_says_what_it_said(name, tmp_path):
    asked, said = MODELS[name].given[0], EXPECTED[name]
    model = fenchel.load(kept(name))
    says = answers(model, asked)
    assert says["labels"] == said["labels"] and says.get("arcs") == said.get("arcs")
    np.testing.assert_allclose(says.get("numbers", []), said.get("numbers", []), rtol=1e-9, atol=1e-12)
    assert str(model.certificate_)
    model.save(tmp_path / "again")
    assert answers(fenchel.load(tmp_path / "again"), asked) == says


@pytest.mark.parametrize("name", ["LogisticRegression-two.1", "DependencyParser.1"])
def test_a_model_of_a_newer_format_is_refused_by_a_sentence(name, tmp_path):
    arrays, header = open_model(kept(name).read_bytes())
    (tmp_path / "new").write_bytes(save(arrays, metadata=header | {"format_version": "3"}))
    with pytest.raises(ModelError) as caught:
        fenchel.load(tmp_path / "new")
    found = "model format 3, but this fenchel reads formats 1 and 2"
    way_out = "use the fenchel that wrote it, or a newer one"
    assert str(caught.value) == f"{tmp_path / 'new'}: {found}; {way_out}"
