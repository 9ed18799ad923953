"""Lines of UTF-8 text files, and the errors about what is none."""

import codecs
from contextlib import contextmanager

from fenchel.errors import DataError
from fenchel.io.files import gunzipped, open_input, source_name


@contextmanager
def open_text(path):
    """(stream of bytes, name for errors) of a path or a binary stream, gunzipped if need be."""
    if hasattr(path, "readline"):
        source = str(getattr(path, "name", "<stream>"))
        yield gunzipped(path, source), source
    else:
        with open_input(path) as stream:
            yield stream, source_name(path)


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
