"""Install each package given into an empty environment and run the README's program with it."""

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def program() -> str:
    """The README's first Python program."""
    return re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)[1]


def try_out(package: str) -> None:
    """Install it, run the program away from the sources, and make sure that what is not Python came along."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(Path(package).resolve())], check=True)
        for command in (["-c", program()], ["-m", "fenchel", "demo"]):
            subprocess.run([python, *command], check=True, cwd=folder)


if __name__ == "__main__":
    for package in sys.argv[1:]:
        print(f"--- {package}", flush=True)
        try_out(package)
