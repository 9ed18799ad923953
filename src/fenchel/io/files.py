"""Opening files for every format: gzip by name, "-" for standard streams, and never a half-written file."""

import errno
import gzip
import os
import sys
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}  # a full disk, a limit, a quota


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
    given, path = path, Path(os.path.realpath(path))  # a link stays a link
    if path.exists() and not path.is_file():  # a pipe or /dev/null must not be replaced by a file
        temporary = path
    else:
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file, _compressed(file, path) as stream:
            yield stream
        if temporary != path:
            os.replace(temporary, path)
    except BaseException as error:  # Ctrl-C too
        if temporary != path:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and _is_about(error, temporary):
            raise type(error)(error.errno, _reason(error, given, path), os.fspath(given)) from error
        raise


def _is_about(error, path) -> bool:
    """Whether an error is of writing this file; one that names no file is, if only writing can end so."""
    if error.filename is None:
        return error.errno in FULL
    return os.fspath(error.filename) == os.fspath(path)


def _reason(error, given, path) -> str:
    """What is wrong with the path that the user gave, and not with a temporary file beside it."""
    folder = path.parent if os.path.islink(given) else Path(given).parent
    if isinstance(error, FileNotFoundError | NotADirectoryError) and not folder.is_dir():
        return f"there is no folder {folder}"
    if isinstance(error, PermissionError) and not path.exists():
        return f"permission denied in the folder {folder}"
    return error.strerror


def _compressed(file, path):
    """The file, behind gzip if the path says so; with no time in it: the same data give the same bytes."""
    if path.name.endswith(".gz"):
        return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
    return nullcontext(file)
