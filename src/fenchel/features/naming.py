"""How the keys and values of a dict become names of attributes and their amounts."""

from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import numpy as np

MOST_MET = 2**19  # pairs of key and value that are remembered


class Attributes(NamedTuple):
    """Names of features and their values, two lists of one length; a name may come more than once."""

    names: list
    values: list


@dataclass(frozen=True)
class Naming:
    """{"k": "v"} is the attribute "k", separator, "v" of amount 1; {"k": number or bool} is "k" of so much.

    nested: whether dicts, lists and sets may be values: they put their key and the separator before each of
    their own. zeros: whether learning keeps attributes of amount 0 in its rows.
    """

    name: str
    separator: str
    nested: bool = False
    zeros: bool = False

    def pair(self, key, value, prefix="") -> tuple:
        """The name of a key with this value, and its amount."""
        if type(key) is str and type(value) is str:  # nearly always
            return f"{prefix}{key}{self.separator}{value}", 1.0
        key = _text(key)
        if isinstance(value, str | bytes):
            return f"{prefix}{key}{self.separator}{_text(value)}", 1.0
        return _after(prefix, key), value

    def attributes(self, token: dict) -> Attributes:
        """All attributes of a dict, whatever it holds."""
        found = Attributes([], [])
        self._collect(token, "", found)
        return found

    def _collect(self, item, prefix, found):
        if not isinstance(item, dict):
            names = in_order(item)
            found.names.extend([_after(prefix, _text(name)) for name in names])
            found.values.extend([1.0] * len(names))
            return
        for key, value in item.items():
            if self.nested and isinstance(value, dict | list | set):
                self._collect(value, f"{prefix}{_text(key)}{self.separator}", found)
            else:
                name, amount = self.pair(key, value, prefix)
                found.names.append(name)
                found.values.append(amount)


PLAIN = Naming("fenchel", "=")
# Attributes of amount 0 are kept, since CRFsuite counts them as seen with the label.
CRFSUITE = Naming("crfsuite", ":", nested=True, zeros=True)
NAMINGS = {naming.name: naming for naming in (PLAIN, CRFSUITE)}


def in_order(names):
    """The names; those of a set sorted, since its order differs from process to process and gives the ids."""
    return sorted(names, key=str) if isinstance(names, set | frozenset) else names


def _text(name):
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name


def _after(prefix, name):
    return prefix + name if isinstance(name, str) else name  # what is no name is refused where it is numbered


class Pairs(dict):
    """(key, value) -> its place in `columns` and `amounts`: what is met again costs no work on strings.

    number: a function from a name to its column; unknown: the column of names that have none, or None while
    all get one. Threads may share one: a place is never given twice.
    """

    def __init__(self, naming: Naming, number):
        super().__init__()
        self.naming, self.number, self.unknown = naming, number, None
        self.columns, self.amounts = np.empty(1024, np.uint32), np.empty(1024)
        self._used, self._lock = 0, Lock()

    def __missing__(self, pair):
        name, amount = self.naming.pair(*pair)
        column, amount = self.number(name), float(amount)
        with self._lock:
            place = self._used
            if place == self.columns.size:
                self._double()
            self.columns[place], self.amounts[place] = column, amount
            self._used += 1
        # other numbers are seldom met again; 1, True and 1.0 are equal
        if type(pair[0]) is str and (type(pair[1]) is not float or amount in (0.0, 1.0)):
            self[pair] = place
        return place

    def _double(self):
        size = self.columns.size
        self.columns = np.concatenate([self.columns, np.empty(size, np.uint32)])
        self.amounts = np.concatenate([self.amounts, np.empty(size)])

    @property
    def full(self) -> bool:
        return self._used >= MOST_MET
