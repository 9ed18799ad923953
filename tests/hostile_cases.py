"""What `hostile.py` reads: of each reader samples that are right, how to read one, and what must come out."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np

import fenchel.compat
import naive_readers as naive
from fenchel.errors import DataError
from fenchel.features.attributes import Extractor
from fenchel.features.tokens import Tokens
from fenchel.io import columns, libsvm
from fenchel.io.columns import iterate_columns, read_columns
from fenchel.io.crfsuite import iterate_crfsuite, read_crfsuite
from fenchel.io.events import read_events
from fenchel.io.lcrf import LinearChain, write_lcrf
from fenchel.io.liblinear import read_liblinear
from fenchel.io.libsvm import read_libsvm
from fenchel.io.models import ModelError
from fenchel.io.trace import read_trace
from fenchel.io.treebanks import iterate_sentences, read_treebank
from hostile_commands import FILE, OUTPUT, command
from hostile_models import MODELS, checkpoint_samples, compat_samples, go_on, use_compat
from mutations import damaged, damaged_model, damaged_words


@dataclass(frozen=True)
class Case:
    """A reader.

    make: the samples.  read: the result of a file.  plain: the result as plain lists, to be compared with
    what `twin` makes of the same bytes.
    """

    name: str
    make: Callable
    read: Callable
    plain: Callable | None = None
    twin: Callable | None = None
    damage: Callable = damaged
    errors: type = DataError
    suffix: str = ""
    share: int = 1  # one in so many of the inputs is enough: what takes longer, and rests on other readers

    def samples(self) -> list[bytes]:
        return _made(self.make)

    def warm(self, folder) -> None:
        """Read every sample, which must go well: compiles what there is to compile."""
        for data in self.samples():
            path = Path(folder) / f"sample{self.suffix}"
            path.write_bytes(data)
            assert not self.compare(data, self.read(path)), self.name

    def compare(self, data, result) -> str:
        """What the result has wrong; empty if nothing."""
        if self.twin is None:
            return ""
        try:
            expected = self.twin(data)
        except naive.Refused:
            return "read what the plain reader refuses"
        return "" if self.plain(result) == expected else "read otherwise than the plain reader"

    def regret(self, data) -> str:
        """Whether what was refused is right after all; empty if not."""
        if self.twin is None:
            return ""
        try:
            self.twin(data)
        except naive.Refused:
            return ""
        return "refused what the plain reader reads"


@cache
def _made(make):
    return make()


def texts(*samples):
    """A function that gives the samples as bytes."""
    return lambda: [sample.encode() for sample in samples]


def in_blocks(module, read, size=16):
    """The reader that takes so few bytes at a time that most lines are cut."""

    def read_in_blocks(path):
        with mock.patch.object(module, "BLOCK", size):
            return read(path)

    return read_in_blocks


# ---- libsvm

LIBSVM = texts(
    "+1 1:0.5 3:-2e-3 7:1\n-1 2:1 4:0.25\n# a comment\n+1 qid:3 1:1e5 9:123456789.125\n\n-1\n",
    "0 1:1 2:2 3:3\n1 5:1 # behind\n2 1:0.1 2:0 4:0.30000000000000004\n3 1:9007199254740993 8:1e22\n",
    "1\t1:1\t2:1\r\n2 1:.5 2:5.\r\n",
)


def plain_libsvm(result):
    """As the twin: rows of (index, value), and the number of columns through the largest index."""
    X, y = result
    assert X.indices.size == X.data.size == X.indptr[-1] and X.indptr.size == y.size + 1
    rows = [
        list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)) for a, b in _pairs(X.indptr)
    ]
    return list(zip(y.tolist(), rows, strict=True)), X.shape[1]


def twin_libsvm(data):
    examples = naive.libsvm(data)
    return [(label, row) for label, row, _ in examples], max(last for _, _, last in examples)


def _pairs(ends):
    return pairwise(ends.tolist())


# ---- columns and CRFsuite's items

COLUMNS = texts(
    "He PRP B-NP\nreckons VBZ B-VP\n. . O\n\nThe DT B-NP\ncurrent JJ I-NP\ndeficit NN I-NP\n",
    "\ufeffé\tX\nb\tY\n\n\nc\tX\n \t\nd\u00a0e\tY\n",
    "1 2 3 4\r\n5 6 7 8\r\n\r\n9 a b c\r\n",
)
CRFSUITE = texts(
    "B-NP\tw[0]=He\tpos=PRP\nB-VP\tw[0]=reckons:2.5\tpos=VBZ\nO\tw[0]=.\n\nB-NP\ta\\:b:3\tback\\\\slash:1e-3\n",
    "@weight:2.5\nX\tf\tg:\nY\th:-1\t\n\n@weight:1e-3\tX\tf\n\n",
    "a\n\nb\tc d\te\u00a0f:1\r\n",
)


def read_both_columns(path):
    """The fast reader's tokens and the streaming one's sentences."""
    tokens = read_columns(path)
    return tokens, [next(one.sentences()) for one in iterate_columns(path)]


def plain_columns(result):
    tokens, sentences = result
    whole = list(tokens.sentences())
    return whole if whole == sentences else "the two readers differ"


def read_both_crfsuite(path):
    return read_crfsuite(path), list(iterate_crfsuite(path))


def plain_crfsuite(result):
    whole, sequences = result
    assert [len(s.labels) for s in sequences] == [b - a for a, b in _pairs(whole.starts)]
    return [
        (s.weight, [(y, _named(x)) for y, x in zip(s.labels, s.attributes, strict=True)]) for s in sequences
    ]


def _named(attributes):
    return list(zip(attributes.names, attributes.values, strict=True))


# ---- trees

TREES = texts(
    "1\tEl\tel\td\tda\t_\t2\tDET\t_\t_\n2\tgato\tgato\tn\t_\t_\t0\tROOT\t_\t_\n\n"
    "1\ta\t_\tA\tB\t_\t0\tr\t_\t_\n",
    "# text = x\n1-2\tal\t_\t_\t_\t_\t_\t_\t_\t_\n1\ta\t_\tP\t_\t_\t2\tcase\t_\t_\n"
    "2\tmar\t_\tN\t_\t_\t0\troot\t_\t_\n",
    "Pierre\tNNP\t2\nVinken\tNNP\t3\r\nwill\tMD\t0\n\n#\tX\t0\n",
)


def read_trees_both_ways(path):
    """The treebank, with every sentence printed once more."""
    found = read_treebank(path)
    sentences = [one for one in iterate_sentences(path) if one.fields]
    assert [len(one.with_tree(h)) for one, h in zip(sentences, found.heads, strict=True)]
    return found


def plain_trees(found):
    return list(zip(found.tokens.sentences(), found.heads, strict=True)), found.labels


# ---- events

OPENNLP = texts(
    "sport ball goal=2 team\ntrade market price=1.5e2 a=b=3 =4 x=\n\nlaw court\n",
    "yes f=0.5 g\r\nno g=1 h=.5 k=5.\r\n",
)
MEGAM = texts(
    "0 f1 f2\n1 $$$WEIGHT 2.5 f3\n# comment\nDEV\n1 f1\nTEST\n0 f2 f3\n",
    "a x\tb\nb $$$WEIGHT 1e-3\n",
)
VALUED = texts("0 f1 1.5 f2 -2\n1 $$$WEIGHT 2 f3 1e-3\nDEV\n1 f1 3\n", "x a 1 b 2\r\ny c .5\r\n")
MEGAM_EXPLICIT = texts("0 # a b # c\n1 $$$WEIGHT 2 # d # e f # g\n", "1 # # x\n0 # y z\n")
TADM = texts(
    "2\n1 2 0 1.5 3 2\n0 1 3 -1\n3\n1 0\n2 1 7 0.5\n0 0\n",
    "&header\nanything at all\n/\n1\n0.5 1 12 1e3\n",
)


def reads_events(format, **options):
    return lambda path: list(read_events(path, format, **options))


def plain_events(events):
    return [(event.label, _named(event.attributes)) for event in events]


def plain_weighted(events):
    return [(event.label, event.weight, _named(event.attributes)) for event in events]


def plain_candidates(events):
    return [[(n, _named(c)) for n, c in zip(e.counts, e.candidates, strict=True)] for e in events]


# ---- templates and traces

TEMPLATES = texts(
    "# Unigram\nU00:%x[-2,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%x[0,0]\n\nB\n",
    'u:%x[0,0]\nu:two %X[-1,1] # a comment\n*:%m[0,0,"^.?.?$"]\n'
    'b:%t[1,0,"\\u\\l*"]\n*\nu:%x[@1,0]/%x[@-1,1]\n',
    "U:plain text\nB01:%x[0,1]\r\nU02:%x[+1, 0]\r\n",
)
TRACE = texts(
    '{"format_version": 1, "solver": "sdca", "problem": "5 examples", "seed": 3}\n'
    '{"passes": 1.0, "oracle_calls": 5, "updates": 5, "seconds": 0.01, "primal": 0.6, "dual": 0.5, '
    '"gap": 0.1, "gradient_norm": null, "validation": null}\n'
    '{"passes": 2.0, "oracle_calls": 10, "updates": 9, "seconds": 0.02, "primal": "inf", "dual": "-inf", '
    '"gap": 1e-7, "gradient_norm": 0.25, "validation": 0.5}\n'
)
WORDS = Tokens.from_sentences([[("He", "PRP"), ("runs", "VBZ")], [("Ölmühle", "NN")]])


def read_and_apply(path):
    """A template, used on a few words."""
    extractor = Extractor(path)
    extractor.fit(WORDS)
    assert len(extractor.names()) == extractor.n_attributes
    unary, _ = extractor.transform(WORDS)
    assert unary.shape[0] == WORDS.n_tokens
    return extractor


def read_and_list(path):
    trace = read_trace(path)
    assert isinstance(trace.solver, str) and isinstance(trace.problem, str)
    for row in trace:
        assert isinstance(row.oracle_calls, int) and isinstance(row.gap, float)
    return trace


# ---- models


def load_and_use(use):
    """A function that loads a model and asks it for labels."""

    def read(path):
        model = fenchel.load(path)
        str(model.certificate_), model.get_params()
        use(model)
        return model

    return read


def small_chain(n_labels, n_attributes) -> LinearChain:
    """Names of all lengths and alphabets; an attribute in three has no weight."""
    rng = np.random.default_rng(n_attributes)
    states = rng.normal(size=(n_attributes, n_labels)) * (rng.random((n_attributes, n_labels)) < 0.7)
    states[::3] = 0.0
    moves = rng.normal(size=(n_labels, n_labels)) * (rng.random((n_labels, n_labels)) < 0.7)
    names = [f"{'ü:' * (k % 13)}{k}" for k in range(n_attributes)]
    return LinearChain([f"L{k}" for k in range(n_labels)], names, states, moves)


def lcrf_samples():
    """CRFsuite's binary models as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path, contents = Path(folder) / "m", []
        for sizes in ((1, 0), (2, 5), (3, 40)):
            write_lcrf(path, small_chain(*sizes))
            contents.append(path.read_bytes())
    return contents


def read_and_label(path):
    """CRFsuite's model, used on a few tokens."""
    model = fenchel.compat.CRF.from_crfsuite(path)
    assert [len(labels) for labels in model.predict([[["2"], {"ü": "1"}], []])] == [2, 0]
    assert len(model.chain_.coef_) == len(model.classes_)


LIBLINEAR = texts(
    "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 1\nw\n1 \n0.5 \n2 \n",
    "solver_type MCSVM_CS\nnr_class 3\nlabel 2 0 1\nnr_feature 2\nbias -1\nw\n1 0 2 \n0.5 1e3 -2 \n",
    "bias 2.5\nnr_feature 1\nlabel 3 4\nnr_class 2\nsolver_type L2R_L1LOSS_SVC_DUAL\nw\n-1 \n0.25 \n",
)


def read_and_classify(path):
    """LIBLINEAR's model, used on a row."""
    found = read_liblinear(path)
    assert (np.diff(found.labels) > 0).all() and np.isfinite(found.weights).all()
    assert (
        found.weights.shape[0]
        == found.intercepts.size
        == (1 if found.labels.size == 2 else found.labels.size)
    )


# ---- commands: files whose labels and columns the small models know

LABELLED = texts(
    "0 1:1\n1 2:1\n", "0 1:0.5 3:-2\n1 2:1\n5 1:1 2:1 3:1\n2\n", "0 1:1\n1 2:2\n2 3:3\n5 1:4\n0 1:2\n1 2:1\n"
)
PAIRED = texts("the e DET\ndog g NOUN\n\na a DET\ncat t NOUN\nsleeps s VERB\n", "the e DET\n2-X X NUM\n")
ITEMS = texts("DET\tthe\tw=a:2\nNOUN\tdog\n\nDET\ta\nVERB\tsleeps\tbias\n", "NUM\tbias\nDET\tcat\tw[0]=x\n")
BRIEF = ("-o", OUTPUT, "--solver", "lbfgs", "--max-passes", "3")


CASES = [
    Case("libsvm", LIBSVM, read_libsvm, plain_libsvm, twin_libsvm),
    Case("libsvm .gz", LIBSVM, read_libsvm, plain_libsvm, twin_libsvm, suffix=".gz"),
    Case("libsvm in blocks", LIBSVM, in_blocks(libsvm, read_libsvm), plain_libsvm, twin_libsvm),
    Case("columns", COLUMNS, read_both_columns, plain_columns, naive.columns),
    Case("columns in blocks", COLUMNS, in_blocks(columns, read_both_columns), plain_columns, naive.columns),
    Case("crfsuite", CRFSUITE, read_both_crfsuite, plain_crfsuite, naive.crfsuite),
    Case("trees", TREES, read_trees_both_ways, plain_trees, naive.treebank),
    Case("opennlp", OPENNLP, reads_events("opennlp"), plain_events, naive.opennlp),
    Case("opennlp names", OPENNLP, reads_events("opennlp", real_values=False)),
    Case("megam", MEGAM, reads_events("megam"), plain_weighted, naive.megam),
    Case("megam values", VALUED, reads_events("megam", values=True), plain_weighted, naive.megam_values),
    Case("megam explicit", MEGAM_EXPLICIT, reads_events("megam", explicit=True)),
    Case("tadm", TADM, reads_events("tadm"), plain_candidates, naive.tadm),
    Case("templates", TEMPLATES, read_and_apply),
    Case("traces", TRACE, read_and_list),
    *(
        Case(f"model {name}", make, load_and_use(use), damage=damaged_model, errors=ModelError)
        for name, (make, use) in MODELS.items()
    ),
    Case("model compat", compat_samples, load_and_use(use_compat), damage=damaged_model, errors=ModelError),
    Case("checkpoint", checkpoint_samples, go_on, damage=damaged_model),
    Case("model of CRFsuite", lcrf_samples, read_and_label, damage=damaged_words, errors=ModelError),
    Case("model of LIBLINEAR", LIBLINEAR, read_and_classify, errors=ModelError),
    Case("predict lr", LABELLED, command("predict", "MODEL lr", FILE), share=4),
    Case("evaluate lr", LABELLED, command("evaluate", "MODEL lr", FILE), share=4),
    Case("evaluate maxent", OPENNLP, command("evaluate", "MODEL maxent", FILE), share=4),
    Case("predict crf", PAIRED, command("predict", "MODEL crf", FILE), share=4),
    Case("evaluate crf", PAIRED, command("evaluate", "MODEL crf", FILE), share=4),
    Case("predict tagger", PAIRED, command("predict", "MODEL tagger", FILE), share=4),
    Case("evaluate tagger", PAIRED, command("evaluate", "MODEL tagger", FILE), share=4),
    Case("predict crf items", ITEMS, command("predict", "MODEL crf named", FILE), share=4),
    *(
        Case(f"inspect {name}", make, command("inspect", FILE), damage=damaged_model, share=4)
        for name, (make, _) in MODELS.items()
        if name != "graph"  # for use in Python only
    ),
    Case("train lr", LABELLED, command("train", "lr", FILE, *BRIEF), share=20),
    Case("train maxent", OPENNLP, command("train", "maxent", FILE, "--format", "opennlp", *BRIEF), share=20),
    Case("train tagger", PAIRED, command("train", "tagger", FILE, *BRIEF), share=20),
    Case("train crf", PAIRED, command("train", "crf", FILE, *BRIEF), share=20),
    Case("train crf items", ITEMS, command("train", "crf", FILE, *BRIEF), share=20),
]
