"""The whole suite once per row of a table, each row another machine in one respect: `make test-matrix`.

    python .ci/matrix.py [--rows generic,prescott] [--newest path/to/python] [pytest arguments]

Before its tests a row looks whether its setting took, in a process of its own: some act only when they are
there before the first import. What this processor cannot run is skipped, with the reason. Logs: .matrix.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / ".matrix"
NEWEST = ROOT / ".venv-newest"
CANDIDATES = ("python3.15", "python3.14", "python3.13")  # for the row of the newest Python, in this order

# Programs that fail where the setting of a row did not take.
GENERIC = """
from numba.core.registry import cpu_target
_, name, features = cpu_target.target_context.codegen().magic_tuple()  # Numba keys cached kernels by this
assert (name, features) == ("generic", ""), (name, features)
"""
BLAS = """
import numpy, scipy.linalg, threadpoolctl
pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
assert pools and all(pool[{key!r}] in {values!r} for pool in pools), [pool[{key!r}] for pool in pools]
"""
PLAIN_NUMPY = """
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
on = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
assert not on, on
"""
# The names differ between versions of NumPy, and it warns of one that the processor does not have.
NUMPY_FEATURES = """
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
print(*(name for name in __cpu_dispatch__ if __cpu_features__.get(name)))
"""


class Skip(Exception):
    """Why a row cannot be run here."""


@dataclass
class Row:
    """One factor: variables of the environment, what the processor must have for it, a check, a Python."""

    name: str
    variables: dict = field(default_factory=dict)
    flags: tuple = ()
    check: str = ""
    python: str = sys.executable


def main() -> int:
    options, tests = parse()
    LOGS.mkdir(exist_ok=True)
    rows = [name for name in ROWS if not options.rows or name in options.rows.split(",")]
    unknown = set((options.rows or "").split(",")) - set(ROWS) - {""}
    if unknown:
        raise SystemExit(f"no row {sorted(unknown)}; the rows are {', '.join(ROWS)}")
    failed = 0
    for name in rows:
        start = time.monotonic()
        try:
            right, words = run(ROWS[name](options), tests)
        except Skip as reason:
            right, words = True, f"skipped: {reason}"
        failed += not right
        verdict = "ok    " if right else "FAILED"
        print(f"{name:14} {verdict} {time.monotonic() - start:7.0f} s   {words}", flush=True)
    return 1 if failed else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", help=f"some of {','.join(ROWS)}")
    parser.add_argument("--newest", help="a Python for the last row, instead of the newest on PATH")
    return parser.parse_known_args()


def run(row: Row, tests) -> tuple[bool, str]:
    """Whether the suite passed, and the last line of pytest, or of whatever went wrong."""
    missing = sorted(set(row.flags) - processor_flags())
    if missing:
        raise Skip(f"the processor has no {', '.join(missing)}")
    environment = os.environ | row.variables
    checked = subprocess.run([row.python, "-c", row.check], env=environment, capture_output=True, text=True)
    if checked.returncode:
        return False, "the setting did not take: " + (checked.stderr.strip().splitlines() or ["?"])[-1]
    log = LOGS / f"{row.name}.log"
    command = [row.python, "-m", "pytest", "-n", "2", "--dist", "worksteal", *tests]
    with log.open("w", encoding="utf-8") as file:
        code = subprocess.run(command, env=environment, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
    return code.returncode == 0, summary(log)


def summary(log) -> str:
    """pytest's last line with counts, and where to read on."""
    lines = [line for line in log.read_text(encoding="utf-8").splitlines() if re.search(r"\d+ \w+ in ", line)]
    return f"{lines[-1] if lines else 'no tests were run'} ({log.relative_to(ROOT)})"


def processor_flags() -> set:
    """What the processor can, by the names of /proc/cpuinfo; empty where there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return set()
    found = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return set(found[1].split()) if found else set()


# ---- the rows


def generic(options):
    """Kernels compiled for any x86-64: no AVX, no FMA."""
    return Row("generic", {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}, check=GENERIC)


def blas(core, *flags, alias=None):
    """OpenBLAS with the kernels of another processor, which it may call by an alias."""

    def row(options):
        check = BLAS.format(key="architecture", values=[core, alias])
        return Row(core.lower(), {"OPENBLAS_CORETYPE": core}, flags, check)

    return row


def one_thread(options):
    check = BLAS.format(key="num_threads", values=[1])
    return Row("one-thread", {"OPENBLAS_NUM_THREADS": "1"}, check=check)


def plain_numpy(options):
    """NumPy without the instructions that it chooses at run time."""
    found = subprocess.run([sys.executable, "-c", NUMPY_FEATURES], capture_output=True, text=True, check=True)
    features = found.stdout.strip()
    if not features:
        raise Skip("NumPy uses no instructions here that could be switched off")
    return Row("plain-numpy", {"NPY_DISABLE_CPU_FEATURES": features}, check=PLAIN_NUMPY)


def newest_python(options):
    """The newest Python that all dependencies support, in an environment of its own."""
    tried = []
    for candidate in [options.newest] if options.newest else CANDIDATES:
        version = version_of(candidate)
        if version is None or (version <= sys.version_info[:2] and not options.newest):
            continue
        python = environment_of(candidate)
        if python:
            return Row("newest-python", check="import fenchel, numba, sklearn", python=str(python))
        tried.append(".".join(map(str, version)))
    if tried:
        raise Skip(f"the dependencies do not install on Python {', '.join(tried)}: .matrix/install.log")
    raise Skip("no Python newer than this one on PATH; name one by NEWEST=path")


def version_of(command):
    """(major, minor), or None where there is no such Python or it does not run."""
    if shutil.which(command) is None:
        return None
    program = "import sys; print(*sys.version_info[:2])"
    found = subprocess.run([command, "-c", program], capture_output=True, text=True)
    return tuple(map(int, found.stdout.split())) if found.returncode == 0 else None


def environment_of(command) -> Path | None:
    """The Python of .venv-newest, made anew for another version; None where an installation fails."""
    python = NEWEST / "bin" / "python"
    if version_of(str(python)) == version_of(command) and (NEWEST / ".ready").exists():
        return python
    install = [python, "-m", "pip", "install", "--only-binary", ":all:", "--editable", f"{ROOT}[test]"]
    with (LOGS / "install.log").open("a", encoding="utf-8") as log:
        for step in ([command, "-m", "venv", "--clear", NEWEST], install):
            if subprocess.run(step, stdout=log, stderr=subprocess.STDOUT).returncode:
                return None
    (NEWEST / ".ready").touch()
    return python


ROWS = {
    "generic": generic,
    "prescott": blas("Prescott", "pni", alias="Katmai"),
    "haswell": blas("Haswell", "avx2", "fma"),
    "skylakex": blas("SkylakeX", "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"),
    "one-thread": one_thread,
    "plain-numpy": plain_numpy,
    "newest-python": newest_python,
}

if __name__ == "__main__":
    sys.exit(main())
