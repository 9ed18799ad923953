"""Commands of the command line on damaged files: an answer, or one sentence and exit code 2."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from commands import run
from fenchel.errors import DataError
from hostile_models import chain_samples, events_samples, flat_samples, tagger_samples

FILE, OUTPUT = "FILE", "OUTPUT"
MODELS = {
    "MODEL lr": (flat_samples, 2),
    "MODEL maxent": (events_samples, 0),
    "MODEL crf": (chain_samples, 2),
    "MODEL crf named": (chain_samples, 0),
    "MODEL tagger": (tagger_samples, 0),
}


def command(*arguments):
    """A function that runs a command on a file; DataError where it says that the file is wrong."""

    def read(path):
        places = {FILE: path, OUTPUT: Path(path).with_name("output")} | {k: model_file(k) for k in MODELS}
        result = run(*(places.get(one, one) for one in arguments))
        if result.exit_code == 2:
            assert result.stderr.startswith("fenchel: ") or "read in" in result.stderr, result.stderr
            assert "memory" not in result.stderr or "train" in arguments, result.stderr
            assert result.stderr.rstrip("\n").rpartition("\n")[2].startswith("fenchel: "), result.stderr
            raise DataError(str(path), None, result.stderr)
        assert "internal error" not in result.stderr and "Traceback" not in result.output, result.stderr
        assert result.exit_code == 0 or "train" in arguments, result.stderr
        return result.stdout

    return read


@cache
def model_file(kind):
    """The path of a small model of that kind, which lasts as long as the process."""
    make, which = MODELS[kind]
    path = _folder() / kind
    path.write_bytes(make()[which])
    return path


@cache
def _folder():
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
