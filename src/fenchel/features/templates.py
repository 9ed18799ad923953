"""Templates: which attributes a tagger sees at each token of a sentence.

A template is a preset (`chunk`, `ner`, `pos`) or the text of a CRF++ template or of Wapiti patterns:

    U01:%x[-1,0]          unary: the word (column 0) of the token before, for each label
    U02:%x[0,0]/%x[0,1]   the word and its part of speech, joined
    B                     the plain transition table
    B01:%x[0,1]           edge: the part of speech, for each pair of labels
    u:%m[0,0,".?.?$"]     Wapiti: what a pattern matches; %t: whether it matches; %X %M lower-case the value
    *:%x[@1,0]            Wapiti: unary and edge; the first word of the sentence

Outside of the sentence values are `_B-1`, `_B+1`, ... in CRF++, `_x-1`, `_x+1`, ... in Wapiti.
"""

import gzip
import io
import re
import zlib
from dataclasses import dataclass

from fenchel.errors import DataError
from fenchel.features.lines import Line, Macro, Source
from fenchel.features.patterns import translate
from fenchel.features.presets import PRESETS

DIALECTS = ("crf++", "wapiti")
_KINDS = {"u": "unary", "b": "edge", "*": "both"}
_FUNCTIONS = {"x": "same", "t": "test", "m": "match"}
_MACRO = re.compile(
    # possessive: nothing that was taken is given back, so that a line of blanks takes no time squared
    r"%(?P<letter>[xXtTmM])\[\s*+(?P<anchor>[@*]?+)\s*+(?P<offset>[+-]?[0-9]++)\s*+,\s*+(?P<column>[0-9]++)\s*+"
    r'(?:,\s*+"(?P<pattern>(?:\\.|[^"\\])*+)"\s*+)?\]'
)
_WAPITI = re.compile(r"^[ub*]|%[XtTmM]\[|%x\[\s*@", re.MULTILINE)
_LARGEST = 1000  # offsets and columns beyond are slips of the pen, and so are lines of more macros
_LONGEST = 1 << 22  # bytes of a template


class TemplateError(DataError):
    """A template that cannot be used, as the sentence `name:line: message`."""


@dataclass(frozen=True)
class Template:
    """The lines of a template.

    name : the file or the preset, for errors
    dialect : "crf++" or "wapiti", whose padding it uses; "preset": no attribute outside of the sentence
    text : what was parsed; empty for a preset
    transitions : whether there are plain weights for pairs of labels
    """

    name: str
    dialect: str
    lines: tuple
    transitions: bool
    text: str = ""

    def lines_for(self, n_columns: int) -> tuple:
        """The lines to use on data of so many columns; TemplateError where one looks at a missing column.

        Presets go without the lines for columns that are not required.
        """
        if self.dialect == "preset":
            return self._preset_lines(n_columns)
        for line in self.lines:
            for macro in line.macros:
                if macro.source.column >= n_columns:
                    _refuse_column(self.name, line, macro, n_columns)
        return self.lines

    def _preset_lines(self, n_columns):
        required = PRESETS[self.name].n_columns
        if n_columns < required:
            wanted = "words" if required == 1 else "words and parts of speech"
            found = _count(n_columns, "column")
            raise TemplateError(self.name, None, f"the template needs {wanted}, but the data have {found}")
        return tuple(line for line in self.lines if max(line.columns, default=0) < n_columns)

    def to_facts(self) -> dict:
        """What `from_facts` needs to make it again, for a model's header."""
        if self.dialect == "preset":
            return {"preset": self.name}
        return {"name": self.name, "dialect": self.dialect, "text": self.text}

    @classmethod
    def from_facts(cls, facts: dict) -> "Template":
        """The template whose `to_facts` gave these; ValueError if they are damaged."""
        try:
            if "preset" in facts:
                return preset(facts["preset"])
            return parse_template(facts["text"], facts["dialect"], facts["name"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"damaged template: {error!r}") from None


def preset(name: str) -> Template:
    """A preset by name."""
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; the presets are {', '.join(PRESETS)}")
    return Template(name, "preset", PRESETS[name].lines, transitions=True)


def read_template(path) -> Template:
    """A template from a file, or the preset of that name; the dialect is seen in the text.

    A file with the name of a preset is read as `./chunk`.
    """
    if str(path) in PRESETS:
        return preset(str(path))
    try:
        text = _read(path).decode("utf-8-sig")
    except FileNotFoundError:
        presets = ", ".join(PRESETS)
        raise FileNotFoundError(f"{path}: no such template file, nor a preset ({presets})") from None
    except UnicodeDecodeError:
        raise TemplateError(str(path), None, "not a template, expected UTF-8 text") from None
    return parse_template(text.replace("\r\n", "\n").replace("\r", "\n"), name=str(path))


def _read(path):
    """The bytes of a template file, gunzipped if they are gzip."""
    with open(path, "rb") as file:
        data = file.read(_LONGEST + 1)
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(_LONGEST + 1)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise TemplateError(str(path), None, f"not a whole gzip file ({error})") from error
    if len(data) > _LONGEST:
        raise TemplateError(str(path), None, f"more than {_LONGEST} bytes, too long for a template")
    return data


def parse_template(text: str, dialect: str | None = None, name: str = "<template>") -> Template:
    """The template of a text.

    Parameters
    ----------
    text : str
    dialect : "crf++" or "wapiti"
        By default Wapiti's if a line starts with u, b or * or has a macro that only Wapiti knows.
    name : str
        The name of the file, for errors.
    """
    if dialect is None:
        dialect = "wapiti" if _WAPITI.search(text) else "crf++"
    if dialect not in DIALECTS:
        raise ValueError(f"dialect {dialect!r} is unknown, expected one of {', '.join(DIALECTS)}")
    lines, transitions = [], False
    for number, line in enumerate(_clean(text, dialect), 1):
        if line:
            parsed = _parse_line((name, number), line, dialect)
            if not parsed.macros and parsed.kind != "unary":
                transitions = True
                parsed = parsed._replace(kind="unary") if parsed.kind == "both" else None
            lines += [parsed] if parsed else []
    if not lines:
        message = "no line with attributes of tokens; a template needs one, as U00:%x[0,0]"
        raise TemplateError(name, None, message)
    return Template(name, dialect, tuple(lines), transitions, text)


def _clean(text, dialect):
    """The lines without comments and blanks at their ends."""
    for line in text.split("\n"):
        if dialect == "wapiti" or line.startswith("#"):
            line = line.partition("#")[0]
        yield line.rstrip()


def _parse_line(where, line, dialect):
    letters = "UB" if dialect == "crf++" else "UBub*"
    if line[0] not in letters:
        expected = "U, B or #" if dialect == "crf++" else "u, b, * or #"
        message = f"{line[:40]!r} starts with {line[0]!r}, a line must start with {expected}"
        raise TemplateError(*where, message)
    texts, macros, at = [], [], 0
    for found in _MACRO.finditer(line):
        texts.append(_plain(where, line[at : found.start()]))
        macros.append(_parse_macro(where, found, dialect))
        at = found.end()
    texts.append(_plain(where, line[at:]))
    if len(macros) > _LARGEST:
        raise TemplateError(*where, f"{len(macros)} macros, expected at most {_LARGEST} in a line")
    return Line(_KINDS[line[0].lower()], tuple(texts), tuple(macros), number=where[1])


def _plain(where, text):
    """Text between macros, which must not hold the beginning of one."""
    if "%" in text:
        wrong = text[text.index("%") :][:20]
        raise TemplateError(*where, f"{wrong!r} is not a macro, expected one as %x[0,1] after each %")
    return text


def _parse_macro(where, found, dialect):
    letter, anchor, offset, column, pattern = found.group("letter", "anchor", "offset", "column", "pattern")
    text = found.group()
    if dialect == "crf++" and (letter != "x" or anchor or pattern is not None):
        message = f"CRF++ has no {text}, only %x[row,column] (dialect='wapiti' reads it)"
        raise TemplateError(*where, message)
    if anchor == "*":
        raise TemplateError(*where, f"{text} takes its offset from a column, which is not supported")
    if _is_too_large(offset) or _is_too_large(column):
        raise TemplateError(*where, f"the numbers in {text[:40]} are too large")
    if (letter in "xX") != (pattern is None):
        expected = "no pattern" if letter in "xX" else 'a pattern in quotes, as %t[0,0,"^\\u"]'
        raise TemplateError(*where, f"{text} must have {expected}")
    try:
        translate(pattern or "")
    except ValueError as error:
        raise TemplateError(*where, str(error)) from None
    source = Source(int(column), _FUNCTIONS[letter.lower()], pattern or "", letter.isupper())
    return Macro(source, int(offset), anchor == "@")


def _is_too_large(number):
    digits = number.lstrip("+-0")
    return len(digits) > len(str(_LARGEST)) or int(digits or "0") > _LARGEST


def _refuse_column(name, line, macro, n_columns):
    """Raise the error about a macro whose column the data do not have."""
    letter = next(k for k, function in _FUNCTIONS.items() if function == macro.source.function)
    letter = letter.upper() if macro.source.lower else letter
    end = f',"{macro.source.pattern}"]' if letter in "tTmM" else "]"
    shown = f"%{letter}[{'@' * macro.absolute}{macro.offset},{macro.source.column}{end}"
    have = f"{_count(n_columns, 'column')} (" + ("only 0)" if n_columns == 1 else f"0 to {n_columns - 1})")
    message = f"{shown} names column {macro.source.column}, but the data have {have}"
    raise TemplateError(name, line.number, message)


def _count(n, noun):
    return f"{n} {noun}" + "s" * (n != 1)
