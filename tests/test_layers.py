"""A room imports only rooms to its left, and importing the package loads nothing heavy."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import fenchel

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "fenchel"

# Each room may import from its own level and from those before it.
LEVELS = [
    {
        "_cache",
        "_compiling",
        "_dispatch",
        "_math",
        "_lanes",
        "_mixed",
        "_packed",
        "_sparse",
        "_prefetch",
        "_sampling",
        "_memory",
        "_threads",
        "_interrupts",
    }
    | {"arrays", "data", "graphs", "constants", "errors", "metrics", "snapshots", "spans", "trace", "trees"},
    {"structures"},
    {
        "certificates",
        "design",
        "coordinates",
        "curvature",
        "losses",
        "matrices",
        "offers",
        "points",
        "regularizers",
    },
    {"problem"},
    {"checkpoints", "choosing", "problems", "results", "solvers", "loop", "paths"},
    {"distributed"},
    {"estimators"},
    {"compat"},
    {"saved"},
    {"cli"},
]
ANYWHERE = {"__init__", "__main__"}  # the package's own names, fetched on first use
BESIDE = {  # rooms beside the line, and all they may import
    "io": LEVELS[0] | {"io", "features"},
    "features": LEVELS[0] | {"features"},
    "report": {"trace", "io", "report"},
}
READERS = {"estimators", "compat", "saved", "cli"}  # who may import the rooms beside the line


def room_of(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def imported_rooms(path):
    """Rooms of the package that a file imports anywhere in its text, functions included."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno}: a relative import"
            if node.module == "fenchel":
                rooms |= {alias.name for alias in node.names if alias.name != "__version__"}
            elif (node.module or "").startswith("fenchel."):
                rooms.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {a.name.split(".")[1] for a in node.names if a.name.startswith("fenchel.")}
    return rooms


def allowed_for(room):
    if room in BESIDE:
        return BESIDE[room]
    level = next((k for k, rooms in enumerate(LEVELS) if room in rooms), None)
    assert level is not None, f"{room} is a room without a place; give it one in tests/test_layers.py"
    own = set().union(*LEVELS[: level + 1])
    return own | set(BESIDE) if room in READERS else own


FILES = sorted(path for path in PACKAGE.rglob("*.py") if room_of(path) not in ANYWHERE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_room_imports_only_rooms_to_its_left(path):
    room = room_of(path)
    wrong = imported_rooms(path) - allowed_for(room)
    assert not wrong, f"{room} imports {', '.join(sorted(wrong))}"


def reads_of_private_names(path):
    """(line, name) wherever a file asks something else than `self` for a name with an underscore before."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            owner, name = ast.unparse(node.value), node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "setattr", "hasattr"):
            owner, name = ast.unparse(node.args[0]), getattr(node.args[1], "value", None)
        else:
            continue
        is_private = isinstance(name, str) and name.startswith("_") and not name.startswith("__")
        if is_private and owner not in ("self", "cls"):
            yield node.lineno, name


@pytest.mark.parametrize(
    "path", [path for path in FILES if room_of(path) in ("cli", "compat")], ids=lambda path: path.stem
)
def test_what_is_built_upon_the_estimators_uses_their_public_names(path):
    found = [f"{path.name}:{line}: {name}" for line, name in reads_of_private_names(path)]
    assert not found, found


def test_a_private_name_would_be_found(tmp_path):
    file = tmp_path / "some.py"
    file.write_text("model._keep(w)\nself._fit()\ngetattr(model, '_watch')\nmodel.__class__\n")
    assert sorted(reads_of_private_names(file)) == [(1, "_keep"), (3, "_watch")]


def modules_after(program):
    """The top-level modules loaded by a program in a fresh interpreter."""
    program += "\nimport json, sys\nprint(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(finished.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy():
    heavy = {"numba", "scipy", "sklearn", "numpy", "matplotlib", "plotly", "pandas"}
    assert not heavy & modules_after("import fenchel; fenchel.__version__; dir(fenchel)")


def test_editors_are_told_of_the_names_that_are_imported_on_first_use():
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text()).body
    told = {
        alias.asname: node.module for node in stub if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert told == fenchel._PUBLIC | dict.fromkeys(fenchel._MODULES, "fenchel")
    listed = next(ast.literal_eval(node.value) for node in stub if isinstance(node, ast.Assign))
    assert sorted(listed) == sorted(fenchel.__all__)


def test_listing_the_solvers_compiles_nothing():
    program = "from fenchel.solvers import SOLVERS; assert len(list(SOLVERS)) >= 18"
    assert not {"numba", "scipy", "sklearn"} & modules_after(program)


def test_a_trace_can_be_read_without_the_kernels():
    heavy = {"numba", "scipy", "sklearn", "numpy"}
    assert not heavy & modules_after("import fenchel.trace, fenchel.constants")


def named_tuples(tree):
    """The names of the classes that are named tuples."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {node.name for node in found if "NamedTuple" in map(ast.unparse, node.bases)}


def made_by_kernels(tree, classes):
    """(kernel, class) where what Python calls returns a named tuple that it makes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(d) for d in node.decorator_list):
            for given in (each.value for each in ast.walk(node) if isinstance(each, ast.Return)):
                if isinstance(given, ast.Call) and getattr(given.func, "id", None) in classes:
                    yield node.name, given.func.id


def test_no_kernel_that_python_calls_makes_a_named_tuple():
    trees = [ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")]
    classes = set().union(*map(named_tuples, trees))
    assert not [found for tree in trees for found in made_by_kernels(tree, classes)]
