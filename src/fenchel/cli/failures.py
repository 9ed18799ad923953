"""Errors as `fenchel: one sentence` in the words of the command line, with an exit code."""

import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path

import click

FAILED, WRONG_INPUT = 1, 2

# Errors of the user's making. Any other OSError (a full disk, say) is a failure while running.
INPUT_ERRORS = (
    ValueError,
    FileNotFoundError,
    FileExistsError,
    PermissionError,
    IsADirectoryError,
    NotADirectoryError,
    MemoryError,
)

# What the library says in Python's words: the same for one who has only options to turn.
WORDS = (
    (re.compile(r"\(use zero_based=True\)"), "(use --zero-based)"),
    (re.compile(r"\(n_features=\d+\)"), "(all the model has; train with --features N for more)"),
    (
        re.compile(r"\b(max_seconds|intercept_scaling|min_count|sigma2)="),
        lambda found: f"--{found[1].replace('_', '-')} ",
    ),
    (re.compile(r"\bmax_iter="), "--max-passes "),
    (re.compile(r"\bsingle_root=False\b"), "--multi-root"),
    (re.compile(r"\bclass_weight has\b"), "--class-weight has"),
    (re.compile(r"\bloss='(\w+)'"), r"--loss \1"),
    (re.compile(r"\bthat counts; lower min_count\b"), "that counts; lower --min-count"),
    (re.compile(r"\blower min_count\b"), "lower it"),
    (re.compile(r"\bfit without labels\b"), "leave them out by --no-labels"),
    (re.compile(r" \(dialect='wapiti' reads it\)"), ""),
    (re.compile(r"\bread names whole with real_values=False"), "leave --real-values out"),
)


class Failure(click.ClickException):
    """The end of a command: a sentence for stderr and an exit code."""

    def __init__(self, message: str, exit_code: int = WRONG_INPUT):
        super().__init__(message)
        self.exit_code = exit_code

    def show(self, file=None):
        click.echo(f"fenchel: {self.message}", file=file or sys.stderr)


def as_failure(error: BaseException) -> Failure:
    """The sentence and the exit code for an error."""
    if isinstance(error, KeyboardInterrupt):
        return Failure("interrupted", FAILED)
    if isinstance(error, OSError):
        return Failure(_os_sentence(error), WRONG_INPUT if isinstance(error, INPUT_ERRORS) else FAILED)
    if isinstance(error, INPUT_ERRORS):
        return Failure(in_options(str(error)) or "there is not enough memory")
    kind = type(error).__name__
    return Failure(f"internal error, please report it ({kind}: {error}); --debug shows where", FAILED)


def _os_sentence(error):
    """file: what happened."""
    if error.strerror is None:
        return in_options(str(error))
    reason = error.strerror[:1].lower() + error.strerror[1:]
    return f"{error.filename}: {reason}" if error.filename else reason


def in_options(sentence: str) -> str:
    """The sentence on one line, with options in the place of Python's arguments."""
    for pattern, words in WORDS:
        sentence = pattern.sub(words, sentence)
    return " ".join(sentence.split())


def require_place(path) -> None:
    """Refuse an output file that cannot be written, before hours of training rather than after."""
    path = Path(path)
    if path.is_dir():
        raise Failure(f"{path}: is a folder, expected the name of a file to write")
    if not path.parent.is_dir():
        raise Failure(f"{path}: cannot be written, there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise Failure(f"{path}: is no regular file, and would be replaced by one")
    if not os.access(path.parent, os.W_OK):
        raise Failure(f"{path}: cannot be written, permission denied in the folder {path.parent}")


@contextmanager
def writing(path):
    """Name the file that could not be written; the error itself may name a temporary one, or none."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        reason = reason[:1].lower() + reason[1:]
        raise Failure(f"{path}: cannot be written, {reason}", FAILED) from error
