"""Where the attributes of sequences come from: named ones, templates over columns, or plain numbers.

Each source learns its attributes once and afterwards gives rows in the same columns:

    learn(X, min_count) -> Sequences           read(X) -> the same, unknown attributes left out
    learn_batches(batches of X, min_count)     the same without rows, where all X do not fit memory
    names(), edge_names(), sizes               to_file() and from_file for the model file

A source is picked by what the user gives: Tokens or a template, dicts and lists of names, arrays, pairs.
"""

from collections import deque
from dataclasses import dataclass
from itertools import chain

import numpy as np
import scipy.sparse as sp

from fenchel._mixed import Mixed, beside
from fenchel._sparse import Rows, Table, as_csr, as_features, as_rows
from fenchel.features.attributes import Extractor
from fenchel.features.counting import frequent_names
from fenchel.features.encode import encode
from fenchel.features.hashed_attributes import HashedExtractor
from fenchel.features.hashing import Hashed, names_for, read_names
from fenchel.features.naming import NAMINGS, PLAIN
from fenchel.features.tokens import Tokens


@dataclass(frozen=True)
class Sequences:
    """n sequences of N tokens as numbers: rows (N, A), edges (N, B), starts (n + 1,) uint64."""

    rows: Rows | Table | Mixed
    edges: Rows
    starts: np.ndarray

    @property
    def n(self) -> int:
        return self.starts.size - 1


class NamedAttributes:
    """Sequences of tokens, each a dict of attributes or a list of their names, as `features.encode` says."""

    kind = "named"
    transitions = True

    def __init__(self, function=None, naming=PLAIN, hash_bits=None):
        """function(sentence, position) -> attributes of the token there, where X holds something else.

        naming: how dicts name their attributes. hash_bits: names are hashed to so many columns, not kept.
        """
        self.function = function
        self.naming = naming
        self.vocabulary = names_for(hash_bits)

    def learn(self, X, min_count) -> Sequences:
        return self._encode(X, True, min_count)

    def learn_batches(self, batches, min_count) -> None:
        if isinstance(self.vocabulary, Hashed):
            deque(batches, maxlen=0)  # who gives them may learn from them
        else:
            self.vocabulary = frequent_names(map(self._tokens, batches), min_count, self.naming)

    def read(self, X) -> Sequences:
        return self._encode(X, False, 1)

    def _encode(self, X, grow, min_count):
        X, lengths = list(X), []
        for number, sequence in enumerate(X):
            if isinstance(sequence, str | dict) or not hasattr(sequence, "__len__"):
                kind = type(sequence).__name__
                raise TypeError(
                    f"sequence {number} is a {kind}, expected a list with the attributes of each token"
                )
            lengths.append(len(sequence))
        rows, self.vocabulary = self._rows(X, lengths, grow, min_count)
        return Sequences(rows, _no_edges(rows), _starts(lengths))

    def _tokens(self, X):
        """Not all at once: garbage collection would look through them again and again."""
        if self.function is None:
            return chain.from_iterable(X)
        return (self.function(sequence, t) for sequence in X for t in range(len(sequence)))

    def _rows(self, X, lengths, grow, min_count):
        try:
            return encode(self._tokens(X), self.vocabulary, grow, min_count, self.naming)
        except (TypeError, ValueError) as error:
            raise type(error)(_place(str(error), lengths)) from None

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of attributes, and of attributes of edges."""
        return len(self.vocabulary), 0

    def names(self) -> list:
        return self.vocabulary.names

    def edge_names(self) -> list:
        return []

    def to_file(self) -> tuple[dict, dict]:
        facts = {"kind": self.kind, "function": self.function is not None, "naming": self.naming.name}
        return facts, self.vocabulary.to_arrays()

    @classmethod
    def from_file(cls, facts, arrays):
        naming = NAMINGS[facts.get("naming", PLAIN.name)]
        if not isinstance(facts["function"], bool):
            raise ValueError(f"function is {facts['function']!r}, expected true or false")
        source = cls(_lost_function if facts["function"] else None, naming)
        source.vocabulary = read_names(arrays)
        return source


def _lost_function(sentence, t):
    raise ValueError(
        "this model was trained with template=<a Python function>, which a model file cannot hold; "
        "set model.template to that function before predicting"
    )


def _place(message, lengths):
    """ "event 17: ..." of a list of tokens as "sequence 3, token 2: ..."."""
    head, _, rest = message.partition(":")
    word, _, number = head.partition(" ")
    if word != "event" or not number.isdigit():
        return message
    starts = _starts(lengths).astype(np.int64)
    sequence = int(np.searchsorted(starts, int(number), "right")) - 1
    return f"sequence {sequence}, token {int(number) - starts[sequence]}:{rest}"


class TemplateAttributes:
    """Columns of strings and a template: `features.attributes`."""

    kind = "template"

    def __init__(self, template, hash_bits=None):
        if hash_bits is not None and not isinstance(template, Extractor):
            template = HashedExtractor(template, hash_bits)
        self.extractor = template if isinstance(template, Extractor) else Extractor(template)

    @property
    def transitions(self) -> bool:
        return self.extractor.transitions

    def learn(self, X, min_count) -> Sequences:
        tokens = as_tokens(X)
        return _with_edges(tokens, *self.extractor.fit(tokens, min_count))

    def learn_batches(self, batches, min_count) -> None:
        self.extractor.fit_batches(map(as_tokens, batches), min_count)

    def read(self, X) -> Sequences:
        tokens = as_tokens(X)
        return _with_edges(tokens, *self.extractor.transform(tokens))

    @property
    def sizes(self) -> tuple[int, int]:
        return self.extractor.n_attributes, self.extractor.n_edge_attributes

    def names(self) -> list:
        return self.extractor.names()

    def edge_names(self) -> list:
        return self.extractor.edge_names()

    def to_file(self) -> tuple[dict, dict]:
        return {"kind": self.kind, "extractor": self.extractor.to_facts()}, self.extractor.to_arrays()

    @classmethod
    def from_file(cls, facts, arrays):
        if "hash_bits" in facts["extractor"]:
            return cls(HashedExtractor.from_facts(facts["extractor"]))
        return cls(Extractor.from_arrays(facts["extractor"], arrays))


def as_tokens(X) -> Tokens:
    """Tokens, or lists of sentences whose tokens are strings or tuples of strings."""
    return X if isinstance(X, Tokens) else Tokens.from_sentences(X)


class NumberedAttributes:
    """Sequences as arrays or sparse matrices, one row per token; column j is the attribute "j".

    Arrays stay dense, as `as_features` has it.
    """

    kind = "numbered"
    transitions = True

    def __init__(self, columns=None):
        self.columns = columns

    def learn(self, X, min_count) -> Sequences:
        data = self._stack(X)
        if min_count > 1:
            raise ValueError("min_count applies to named attributes; choose the columns of arrays yourself")
        return data

    def read(self, X) -> Sequences:
        return self._stack(X)

    def _stack(self, X):
        matrices = [_as_matrix(number, x) for number, x in enumerate(X)]
        for number, x in enumerate(matrices):
            if x.ndim != 2:
                raise ValueError(f"sequence {number} has {x.ndim} dimensions, expected 2: one row per token")
            self.columns = x.shape[1] if self.columns is None else self.columns
            if x.shape[1] != self.columns:
                raise ValueError(f"sequence {number} has {x.shape[1]} columns, expected {self.columns}")
        if not matrices:
            return Sequences(*[as_rows(np.zeros((0, self.columns or 0)))] * 2, _starts([]))
        rows = _stacked(matrices)
        if not np.isfinite(rows.data).all():
            raise ValueError("X contains NaN or infinity; remove or impute those entries first")
        return Sequences(rows, _no_edges(rows), _starts([x.shape[0] for x in matrices]))

    @property
    def sizes(self) -> tuple[int, int]:
        return self.columns, 0

    def names(self) -> list:
        return [str(j) for j in range(self.columns)]

    def edge_names(self) -> list:
        return []

    def to_file(self) -> tuple[dict, dict]:
        return {"kind": self.kind, "columns": int(self.columns)}, {}

    @classmethod
    def from_file(cls, facts, arrays):
        if type(facts["columns"]) is not int or facts["columns"] < 0:
            raise ValueError(f"{facts['columns']!r} columns, expected a whole number")
        return cls(facts["columns"])


def _as_matrix(number, x):
    try:
        if sp.issparse(x):
            return x.tocsr()
        x = np.asarray(x)
        return x if x.dtype.kind in "biuf" else x.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"sequence {number} holds something else than numbers, but the first sequence is an array of them"
        ) from None


def _stacked(matrices) -> Rows | Table:
    """All tokens, one sequence after the other."""
    if any(sp.issparse(x) for x in matrices):
        return as_rows(sp.vstack([sp.csr_matrix(x) for x in matrices], format="csr"))
    return as_features(np.concatenate(matrices, dtype=np.float64))


class PairedAttributes:
    """Sequences that are pairs (array, tokens): numbers of each token, and its attributes by another source.

    Column j of the arrays is the attribute "vector[j]", behind those of the tokens.
    """

    kind = "paired"

    def __init__(self, tokens, numbers):
        self.tokens, self.numbers = tokens, numbers

    @property
    def transitions(self) -> bool:
        return self.tokens.transitions

    @property
    def function(self):
        """As of `NamedAttributes`."""
        return self.tokens.function

    @function.setter
    def function(self, function):
        self.tokens.function = function

    def learn(self, X, min_count) -> Sequences:
        numbers, tokens = _unpaired(X)
        return _side_by_side(self.tokens.learn(tokens, min_count), self.numbers.learn(numbers, 1))

    def read(self, X) -> Sequences:
        numbers, tokens = _unpaired(X)
        return _side_by_side(self.tokens.read(tokens), self.numbers.read(numbers))

    @property
    def sizes(self) -> tuple[int, int]:
        attributes, edges = self.tokens.sizes
        return attributes + self.numbers.sizes[0], edges

    def names(self) -> list:
        return self.tokens.names() + [f"vector[{name}]" for name in self.numbers.names()]

    def edge_names(self) -> list:
        return self.tokens.edge_names()

    def to_file(self) -> tuple[dict, dict]:
        (facts, arrays), (numbers, _) = self.tokens.to_file(), self.numbers.to_file()
        return {"kind": self.kind, "tokens": facts, "numbers": numbers}, arrays

    @classmethod
    def from_file(cls, facts, arrays):
        tokens = SOURCES[facts["tokens"]["kind"]].from_file(facts["tokens"], arrays)
        return cls(tokens, NumberedAttributes.from_file(facts["numbers"], {}))


def _is_paired(x) -> bool:
    """Whether a sequence is an array, a row per token, and what else is known of its tokens."""
    return isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], np.ndarray) and x[0].ndim == 2


def _unpaired(X) -> tuple[list, list]:
    """The arrays, and the tokens; a row of an array for each token."""
    for number, x in enumerate(X):
        if not _is_paired(x):
            raise TypeError(f"sequence {number} is no pair (array, tokens), but the first sequence is one")
        if len(x[0]) != len(x[1]):
            raise ValueError(f"sequence {number} has {len(x[0])} rows of numbers but {len(x[1])} tokens")
    return [x[0] for x in X], [x[1] for x in X]


def _side_by_side(tokens: Sequences, numbers: Sequences) -> Sequences:
    """The columns of both; numbers stay a table where alone they would."""
    if isinstance(numbers.rows, Table) and isinstance(tokens.rows, Rows):
        return Sequences(beside(tokens.rows, numbers.rows.matrix), tokens.edges, tokens.starts)
    both = as_csr(tokens.rows), as_csr(numbers.rows)
    return Sequences(as_rows(sp.hstack(both, format="csr")), tokens.edges, tokens.starts)


SOURCES = {
    source.kind: source
    for source in (NamedAttributes, TemplateAttributes, NumberedAttributes, PairedAttributes)
}


def source_for(X, template, hash_bits=None):
    """The source of attributes that fits what the user gives; hash_bits: of names and templates."""
    if isinstance(X, list | tuple) and X and _is_paired(X[0]):
        tokens = source_for([x[1] for x in X if _is_paired(x)], template, hash_bits)
        return PairedAttributes(tokens, NumberedAttributes())
    if callable(template):
        return NamedAttributes(template, hash_bits=hash_bits)
    if template is not None:
        return TemplateAttributes(template, hash_bits)
    if isinstance(X, Tokens):
        raise ValueError(
            "columns of strings need a template: the name of a preset, a template file or a function"
        )
    first = next((x for x in X if _length(x) > 0), None) if isinstance(X, list | tuple | np.ndarray) else None
    if not (sp.issparse(first) or (isinstance(first, np.ndarray) and first.ndim == 2)):
        return NamedAttributes(hash_bits=hash_bits)
    if hash_bits is not None:
        raise ValueError("hash_bits applies to named attributes, but these are arrays; leave it out")
    return NumberedAttributes()


def _length(x):
    return x.shape[0] if hasattr(x, "shape") and x.shape else len(x) if hasattr(x, "__len__") else 1


def _with_edges(tokens, rows, edges):
    edges = _no_edges(rows) if edges is None else edges
    return Sequences(rows, edges, tokens.starts.astype(np.uint64))


def _no_edges(rows):
    N = rows.shape[0]
    nothing = np.empty(0, np.uint32), np.empty(0)
    return Rows(np.zeros(N + 1, np.uint64), *nothing, 0)


def _starts(lengths):
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.uint64)
