"""The command line as a whole: help, version, list of solvers, bar, processes."""

import pydoc
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import fenchel
from commands import run
from fenchel.cli import COMMANDS, cli, kinds
from fenchel.cli.failures import Failure
from fenchel.cli.output import label_text
from fenchel.cli.progress import fraction_done
from fenchel.solvers import SOLVERS

HELP = [[verb] for verb in COMMANDS]
HELP += [[verb, kind] for verb in ("train", "race", "path") for kind in kinds.KINDS]


@pytest.mark.parametrize("arguments", [[], *HELP], ids=" ".join)
def test_help_has_an_example_and_explains_each_option(arguments):
    result = run(*arguments, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"fenchel {' '.join(arguments)}".rstrip() in result.stdout.partition("Example:")[2]
    command = cli
    for name in arguments:
        command = command.get_command(None, name)
    assert all(option.help for option in command.params if option.param_type_name == "option")


def test_a_class_without_a_kind_is_for_python():
    with pytest.raises(Failure, match="a dict model is for use in Python only"):
        kinds.kind_of({})


def test_help_imports_nothing_heavy():
    script = f"""
import sys
from click.testing import CliRunner
from fenchel.cli import cli
for arguments in {[[], *HELP]!r}:
    assert CliRunner().invoke(cli, [*arguments, "--help"]).exit_code == 0
heavy = {{"numba", "sklearn", "scipy", "numpy", "rich", "matplotlib"}} & set(sys.modules)
sys.exit(f"imported {{heavy}}" if heavy else 0)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_what_scikit_learn_hardly_uses_is_imported_late():
    program = """
import sys
from importlib.util import find_spec
from fenchel.cli.late import import_late
import_late("scipy.stats"), import_late("no_such_module")
import sklearn.base, scipy.stats
assert "scipy.stats.distributions" not in sys.modules and find_spec("scipy.stats").name == "scipy.stats"
assert scipy.stats.norm.cdf(0.0) == 0.5 and scipy.stats.t is sys.modules["scipy.stats"].t
assert "no_such_module" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_solvers_lists_them_all_with_what_they_can_do():
    result = run("solvers")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    heading = next(line for line in lines if line.split()[:1] == ["solver"])
    columns = [heading.index(name) for name in ("two", "cross", "joint", "chain", "graph", "tree", "method")]
    rows = {line.split()[0]: line for line in lines[-len(SOLVERS) :]}
    assert list(rows) == list(SOLVERS)
    assert columns[-1] <= 56  # and the name of a method fits a terminal of 80

    def cells(name):
        return [rows[name][a:b].strip() for a, b in pairwise(columns)]

    assert cells("cd-dual") == ["lh"] * 3 + ["-"] * 3
    assert cells("lbfgs") == ["l"] * 6
    assert cells("sm-g1") == ["l", "l", "-", "-", "-", "-"]
    assert cells("cutting-plane") == cells("cd-outputs") == ["-", *["h"] * 5]
    assert cells("sdca") == [*["lh"] * 5, "h"]
    assert cells("perceptron") == ["-", "-", "-", "lh", "-", "-"]
    assert rows["gis"].endswith("Generalised iterative scaling")


def test_solvers_tells_of_one_which_options_it_has():
    result = run("solvers", "sm-g1")
    assert result.exit_code == 0, result.stderr
    assert "SM(variant='g1', damped=True)" in result.stdout
    assert "flat joint    -" in result.stdout
    assert "did you mean 'sdca'" in run("solvers", "sdac").stderr


def test_python_m_fenchel_tells_the_version():
    command = [sys.executable, "-m", "fenchel", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"fenchel {fenchel.__version__}\n"


@pytest.mark.parametrize(
    ("label", "text"), [(1.0, "1"), (-1.0, "-1"), (-0.0, "0"), (2.5, "2.5"), (np.float64(3), "3")]
)
def test_labels_are_printed_as_they_stood(label, text):
    assert label_text(label) == text


@pytest.mark.parametrize(
    ("distances", "tol", "done"),
    [
        ([1.0, 0.1], 1e-2, 0.5),
        ([1.0, 0.1, 0.5], 1e-2, 0.5),
        ([1.0, 1e-3], 1e-2, 1.0),
        ([np.inf, 1.0, 0.1], 1e-2, 0.5),
        ([np.inf], 1e-2, 0.0),
        ([1.0], 0.0, 0.0),
    ],
)
def test_the_bar_moves_with_the_logarithm_of_the_gap(distances, tol, done):
    assert fraction_done(distances, tol) == pytest.approx(done)


def test_help_of_the_package_begins_with_what_there_is():
    text = pydoc.plain(pydoc.render_doc(fenchel)).split("\n")
    assert len(text) < 100 and any("ChainCRF" in line for line in text[:20])
    assert {"ChainCRF", "load", "solvers"} <= set(dir(fenchel))


def test_a_star_brings_the_names():
    names = {}
    exec("from fenchel import *", names)
    assert names["ChainCRF"] is fenchel.ChainCRF and {"load", "solvers", "path"} <= set(names)
