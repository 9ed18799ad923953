"""Opening files for every format: gzip by name, "-" for standard streams, and never a half-written file."""

import gzip
import os
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path


def open_input(path):
    """A context manager giving the bytes of a file, of a gzipped file, or of standard input."""
    if str(path) == "-":
        return nullcontext(sys.stdin.buffer)
    return gzip.open(path, "rb") if str(path).endswith(".gz") else open(path, "rb")


@contextmanager
def open_output(path):
    """A binary stream to standard output, or to a file that takes its name only when all went well."""
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(os.path.realpath(path))  # a link stays a link
    if path.exists() and not path.is_file():  # a pipe or /dev/null must not be replaced by a file
        temporary = path
    else:
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file, _compressed(file, path) as stream:
            yield stream
        if temporary != path:
            os.replace(temporary, path)
    except BaseException:  # Ctrl-C too
        if temporary != path:
            temporary.unlink(missing_ok=True)
        raise


def _compressed(file, path):
    """The file, behind gzip if the path says so; with no time in it: the same data give the same bytes."""
    if path.name.endswith(".gz"):
        return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
    return nullcontext(file)
