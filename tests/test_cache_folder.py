"""Where compiled kernels are kept, and that everything runs where they cannot be."""

import ast
import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from fenchel import _cache, _math
from fenchel._cache import njit

PACKAGE = Path(_cache.__file__).parent
ONE_KERNEL = "from fenchel._math import log1pexp; print(log1pexp(0.0), type(log1pexp._cache).__name__)"
LN2 = 0.6931471805599453
WARNING = "fenchel cannot keep its compiled code"

resource = pytest.importorskip("resource", reason="permissions and limits of Unix")


def without_privileges():
    """Let root meet permissions as others do: drop CAP_DAC_OVERRIDE from what the next program may have."""
    if os.getuid() == 0 and ctypes.CDLL(None, use_errno=True).prctl(24, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def run(program, *, package=PACKAGE, prepare=None, **environment):
    """A program in a fresh interpreter that has the environment's folders only; its output and messages."""
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    finished = subprocess.run(
        [sys.executable, "-c", program],
        env=own | {name: str(value) for name, value in environment.items()},
        preexec_fn=prepare,
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split(), finished.stderr


@pytest.fixture
def read_only(tmp_path):
    """A copy of the package and a home, neither to be written."""
    package, home = tmp_path / "site" / "fenchel", tmp_path / "home"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    home.mkdir()
    folders = [home, package, *(path for path in package.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        run(f"open({str(home / 'x')!r}, 'w')", prepare=without_privileges)
    except subprocess.SubprocessError:
        pytest.skip("root, and not allowed to give up its privileges")
    except AssertionError as error:
        assert "PermissionError" in str(error)
    else:
        pytest.skip("the file system knows no permissions")
    yield package, home
    for folder in folders:
        folder.chmod(0o755)


def test_without_a_folder_to_write_everything_runs_and_one_warning_says_so(read_only):
    package, home = read_only
    every = "import fenchel.saved, fenchel.spans, fenchel.io.columns, fenchel.io.libsvm; "
    printed, messages = run(every + ONE_KERNEL, package=package, prepare=without_privileges, HOME=home)
    assert printed == [str(LN2), "NullCache"]
    assert messages.count(WARNING) == 1
    assert "NUMBA_CACHE_DIR" in messages
    assert not list(package.rglob("*.nbi"))


def test_a_named_folder_that_cannot_be_written_is_no_obstacle(read_only):
    package, home = read_only
    settings = dict(package=package, HOME=home, TMPDIR=home, NUMBA_CACHE_DIR=home / "closed")
    printed, messages = run(ONE_KERNEL, prepare=without_privileges, **settings)
    assert printed == [str(LN2), "NullCache"]
    assert messages.count(WARNING) == 1


def test_code_compiled_before_the_folder_was_closed_is_loaded(read_only):
    package, home = read_only
    package.chmod(0o755)
    run(ONE_KERNEL, package=package, HOME=home)
    for folder in (package / "__pycache__", package):
        folder.chmod(0o555)
    printed, messages = run(
        "from fenchel._math import xlogx; "
        f"{ONE_KERNEL}; print(sum(log1pexp.stats.cache_hits.values())); print(xlogx(1.0))",
        package=package,
        prepare=without_privileges,
        HOME=home,
    )
    (package / "__pycache__").chmod(0o755)
    assert printed == [str(LN2), "ReadOnlyCache", "1", "0.0"]
    assert messages.count(WARNING) == 1  # of xlogx, which was not compiled


def test_the_help_needs_no_folder_and_says_nothing(read_only):
    package, home = read_only
    program = "import sys; sys.argv = ['fenchel', '--help']; from fenchel.cli import main; main()"
    printed, messages = run(program, package=package, prepare=without_privileges, HOME=home)
    assert "train" in printed
    assert messages == ""


# ---- files that are damaged, and disks that are full


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A fresh folder for kernels."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "mine"))
    monkeypatch.setattr(_cache, "_told", [])
    return tmp_path / "mine"


def kernel():
    """A kernel that knows no more than a new process does."""
    return njit(cache=True, fastmath=False)(_math.log1pexp.py_func)


def loaded(fresh) -> bool:
    """Whether the kernel, called for the first time, came out of the cache."""
    assert fresh(0.0) == LN2
    return sum(fresh.stats.cache_hits.values()) == 1


def test_a_folder_of_ones_own_is_used(mine):
    assert type(kernel()._cache) is _cache.KernelCache
    assert not loaded(kernel())
    assert loaded(kernel())


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [0, 1, 40, -1])
def test_a_file_cut_short_is_compiled_again_and_mended(mine, kind, left):
    kernel()(0.0)
    (damaged,) = mine.rglob(f"*.{kind}")
    damaged.write_bytes(damaged.read_bytes()[:left])
    assert not loaded(kernel())
    assert loaded(kernel())


@pytest.mark.parametrize("size", [0, 1000])
def test_a_full_disk_costs_a_warning_and_leaves_no_wrong_index(mine, size):
    """The index fits into 1,000 bytes, the kernel does not: it must not be looked for under an old name."""
    fresh, (soft, hard) = kernel(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with pytest.warns(RuntimeWarning, match=f"{WARNING} .*mine.*: File too large.* set NUMBA_CACHE_DIR"):
            assert not loaded(fresh)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(mine.rglob("*.nb?"))
    assert not loaded(kernel())


def test_a_folder_that_vanishes_is_made_again(mine):
    fresh = kernel()
    shutil.rmtree(mine)
    assert not loaded(fresh)
    assert loaded(kernel())


def test_code_of_another_version_is_not_loaded(mine, monkeypatch):
    kernel()(0.0)
    monkeypatch.setattr(_cache, "__version__", "another")
    assert not loaded(kernel())
    assert loaded(kernel())


# ---- machine code that somebody else could have written


def test_code_in_a_folder_open_to_everybody_is_not_loaded(mine):
    kernel()(0.0)
    (folder,) = mine.iterdir()
    folder.chmod(0o777)
    _cache.why_not_trusted.cache_clear()
    with pytest.warns(RuntimeWarning, match=f"{folder} can be written by everybody"):
        assert not loaded(kernel())


MODES = {  # of the folder above and of the folder itself: whether it is trusted
    (0o755, 0o755): True,
    (0o755, 0o775): True,
    (0o1777, 0o755): True,
    (0o777, 0o755): False,
    (0o755, 0o757): False,
    (0o755, 0o1777): False,
}


@pytest.mark.parametrize("modes", MODES, ids=str)
def test_who_may_write_decides(tmp_path, modes):
    folder = tmp_path / "above" / "kernels"
    folder.mkdir(parents=True)
    folder.parent.chmod(modes[0])
    folder.chmod(modes[1])
    assert (_cache.why_not_trusted(str(folder)) == "") == MODES[modes]


def test_who_owns_it_decides(tmp_path, monkeypatch):
    folder = tmp_path / "of another"
    folder.mkdir()
    if os.getuid() == 0:
        os.chown(folder, 54321, -1)
        os.chown(tmp_path, 54321, -1)
    owner = folder.stat().st_uid
    monkeypatch.setattr(_cache, "PACKAGE", Path("/usr"))  # root's
    for user, expected in ((12345, f"{folder} belongs to another user"), (owner, "")):
        monkeypatch.setattr(os, "getuid", lambda user=user: user)
        _cache.why_not_trusted.cache_clear()
        assert _cache.why_not_trusted(str(folder)) == expected


# ---- every kernel is kept so


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_a_module_takes_its_njit_from_the_cache(path):
    taken = [
        alias.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "numba"
        for alias in node.names
    ]
    assert not {"njit", "jit", "vectorize", "guvectorize"} & set(taken), "take njit from fenchel._cache"
