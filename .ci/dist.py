"""Install each package given into an empty environment: the README's program prints there what it says."""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from test_docs import PAGES, assert_as_told  # noqa: E402


def try_out(package: str, version: str) -> None:
    """Install it, run the program away from the sources, and make sure that what is not Python came along."""
    program = PAGES["README.md"][0]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)

        def python(*arguments: str) -> str:
            command = [str(Path(folder) / "bin" / "python"), *arguments]
            return subprocess.run(command, check=True, cwd=folder, stdout=subprocess.PIPE, text=True).stdout

        python("-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(Path(package).resolve()))
        assert python("-m", "fenchel", "--version") == f"fenchel {version}\n"
        assert_as_told(printed := python("-c", program["code"]), program["output"])
        print(printed + python("-m", "fenchel", "demo"))


def version_of(package: str) -> str:
    """fenchel-1.2.3.tar.gz, fenchel-1.2.3-py3-none-any.whl"""
    return Path(package).name.removesuffix(".tar.gz").split("-")[1]


if __name__ == "__main__":
    for package in sys.argv[1:]:
        print(f"--- {package}, in an empty environment", flush=True)
        try_out(package, version_of(package))
