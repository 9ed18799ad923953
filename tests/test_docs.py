"""What README and docs show runs, and gives what the page says. Blocks of ```py are for reading only.

The ```python blocks of a page run one after the other. A value behind an expression, as in `1 + 1  # 2`, must
be what comes out; a plain block behind a python block must be what it prints, numbers but roughly: seconds
and rounding are the machine's.
"""

import ast
import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```\n(?P<output>.*?)^```\n)?", re.DOTALL | re.MULTILINE
)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
PAGES = {
    path.relative_to(ROOT).as_posix(): blocks
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if (blocks := list(BLOCK.finditer(path.read_text(encoding="utf-8"))))
}


def told(line):
    """The value that the comment behind an expression gives; none where it is words."""
    try:
        return [ast.literal_eval(line.rpartition("  # ")[2])] if "  # " in line else []
    except (SyntaxError, ValueError):
        return []


def run(code, names):
    """Run a block, statement by statement; what it printed. Values that it tells are compared."""
    lines, printed = code.split("\n"), io.StringIO()
    with redirect_stdout(printed):
        for statement in ast.parse(code).body:
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), "<page>", "exec"), names)
                continue
            value = eval(compile(ast.Expression(statement.value), "<page>", "eval"), names)
            for expected in told(lines[statement.end_lineno - 1]):
                value = value.tolist() if isinstance(value, np.ndarray) else value
                assert value == expected, ast.unparse(statement)
    return printed.getvalue()


def words_of(text):
    """The text without its numbers and the room they take."""
    return NUMBER.sub("#", text).split()


def alike(found, expected):
    """Whether two numbers say the same to a reader; what is nearly nothing is rounding."""
    return abs(found - expected) <= max(0.05 * abs(expected), 1e-6)


def assert_as_told(printed, expected):
    """The words must be those of the page, the numbers alike; seconds are the machine's."""
    assert words_of(printed) == words_of(expected), printed
    steady = (re.sub(r"[-+\d.e]+ s\b", "", text) for text in (printed, expected))
    for found, number in zip(*(map(float, NUMBER.findall(text)) for text in steady), strict=True):
        assert alike(found, number), f"{found}, but the page says {number}:\n{printed}"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_gives_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in PAGES[page]:
        printed = run(block["code"], names)
        if block["output"] is not None:
            assert_as_told(printed, block["output"])


def test_pages_begin_with_titles_of_their_own():
    titles = [path.read_text(encoding="utf-8").split("\n")[0] for path in (ROOT / "docs").glob("*.md")]
    assert all(title.startswith("# ") for title in titles)
    assert len(set(titles)) == len(titles)
