"""Opening files: gzip by its first bytes, "-" for standard streams, and never a half-written file."""

import errno
import glob
import gzip
import io
import os
import sys
import zlib
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from fenchel.errors import DataError

FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}  # a full disk, a limit, a quota

_GZIP = b"\x1f\x8b"  # how every gzip file begins
# No text shrinks to a hundredth: a file that grows past both was made to fill the memory.
_PLENTY, _GROWTH = 1 << 22, 100


def source_name(path) -> str:
    """What errors call the file."""
    return "<stdin>" if str(path) == "-" else str(path)


@contextmanager
def open_input(path):
    """The bytes of a file or of standard input, gunzipped if they begin as gzip does, whatever their name."""
    if str(path) == "-":
        yield gunzipped(sys.stdin.buffer, source_name(path))
    else:
        with open(path, "rb") as file:
            yield gunzipped(file, source_name(path))


def gunzipped(stream, source: str):
    """The stream, or what it holds if that is gzip; DataError, where it is read, if the gzip is damaged."""
    return io.BufferedReader(_Gunzip(stream, source)) if _begins_as_gzip(stream) else stream


def _begins_as_gzip(stream):
    """Look at the first two bytes of a stream, and leave them in it."""
    if hasattr(stream, "seek") and stream.seekable():
        at = stream.tell()
        head = stream.read(2)
        stream.seek(at)
        return head == _GZIP
    head = stream.peek(2)[:2] if hasattr(stream, "peek") else b""
    return head == _GZIP or head == _GZIP[:1]  # a pipe may hand over one byte; no text begins with that one


class _Gunzip(io.RawIOBase):
    """What is inside of a gzip stream."""

    def __init__(self, stream, source):
        self._packed, self._source, self._given = _Counted(stream), source, 0
        self._inside = gzip.GzipFile(fileobj=self._packed)

    def readable(self):
        return True

    def readinto(self, buffer):
        try:
            piece = self._inside.read1(len(buffer))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(self._source, None, f"not a whole gzip file ({error})") from error
        self._given += len(piece)
        if self._given > max(_PLENTY, _GROWTH * self._packed.taken):
            message = f"grows more than {_GROWTH}-fold when gunzipped; if it is meant to, gunzip it first"
            raise DataError(self._source, None, message)
        buffer[: len(piece)] = piece
        return len(piece)


class _Counted:
    """A stream that knows how many bytes were taken from it."""

    def __init__(self, stream):
        self._stream, self.taken = stream, 0

    def read(self, size):
        piece = self._stream.read(size)
        self.taken += len(piece)
        return piece


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
        if os.name == "posix":  # elsewhere asking whether a process runs would end it
            _discard_leftovers(path)
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
    reason = error.strerror
    if isinstance(error, PermissionError):
        reason = f"permission denied in the folder {folder}"
    return f"{reason}; the file that was there is untouched" if path.is_file() else reason


def _discard_leftovers(path) -> None:
    """Remove what processes that were killed had begun to write to this path."""
    for one in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        process = one.name.split(".")[-2]
        if process.isdigit() and not _is_running(int(process)):
            with suppress(OSError):
                one.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's
        return True
    return True


def _compressed(file, path):
    """The file, behind gzip if the path says so; with no time in it: the same data give the same bytes."""
    if path.name.endswith(".gz"):
        return gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
    return nullcontext(file)
