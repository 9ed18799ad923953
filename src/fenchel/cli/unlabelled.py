"""Files whose lines have no label in front."""

import io

from fenchel.cli.output import source


class _Lines(io.BytesIO):
    """The lines of a file with a label put in front; errors call it by the name of the file."""

    name: str


def with_labels(path, label: bytes) -> _Lines:
    """A stream of the lines of a file, each behind this label; blank ones are examples without features."""
    from fenchel.io.files import open_input

    with open_input(path) as stream:
        lines = _Lines(b"".join(label + b" " + line for line in stream))
    lines.name = source(path)
    return lines
