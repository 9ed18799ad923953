"""Lines of UTF-8 text files, and the errors about what is none."""

import codecs
import gzip
import zlib
from contextlib import contextmanager

from fenchel.io.errors import DataError
from fenchel.io.files import open_input


def source_name(path) -> str:
    """What errors call the file."""
    return "<stdin>" if str(path) == "-" else str(path)


@contextmanager
def open_text(path):
    """(stream of bytes, name for errors) of a path or a binary stream; a broken gzip file is a DataError."""
    given = hasattr(path, "readline")
    source = str(getattr(path, "name", "<stream>")) if given else source_name(path)
    try:
        if given:
            yield path, source
        else:
            with open_input(path) as stream:
                yield stream, source
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(source, None, f"not a whole gzip file ({error})") from error


def lines_of(stream):
    """Yield (number, line as bytes), each as soon as it is there: a loop over a pipe would read ahead."""
    for number, line in enumerate(iter(stream.readline, b""), 1):
        yield number, line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def check_text(text: bytes, source: str, line: int) -> None:
    """DataError if the text, which starts at this line of the file, is not UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        number = line + text.count(b"\n", 0, error.start)
        message = f"byte 0x{text[error.start]:02x} is not UTF-8, expected UTF-8 text"
        raise DataError(source, number, message) from None
