"""Linear-chain CRFs, ours and CRFsuite's: attributes, training, tagging and memory, on the same objective.

    FENCHEL_DATA=folder python benchmarks/tagging.py [--sets conll2000,ner,pos]
        [--parts extract,train,tag,memory] [--solvers auto,sdca,lbfgs] [--sampling] [--sentences N]
        [--repeat 1] [--patience 1200] [--threads N] [--epochs 50] [--skip-rivals] [--output file]

P(w) = sum_i loss_i + c2 ||w||^2 with c2 = 1 and a weight for each pair of attribute and label, and of labels:
fenchel's C is 1/(2 c2). Attributes are those of the presets chunk, ner and pos; CRFsuite gets the same
ones, which is checked. fenchel's kernels are compiled before any clock starts.
"""

import argparse
import sys
import tempfile
import time
import warnings
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import datasets
from measure import machine
from memory import fresh, peak
from race import publish
from rivals import CRFsuite, attributes_of, crfsuite_weights, looks_of, open_tagger, read_sentences

PRESETS = {"conll2000": "chunk", "ner": "ner", "pos": "pos"}
C2 = 1.0
TARGETS = (1e-2, 1e-3, 1e-4)
PRECISION = 1e-6  # of the optimum: a hundredth of the tightest target
FEW = 50  # sentences, to compile kernels with
PERCEPTRON = (5, 20, 50)  # epochs
FOLLOWED = (1, 2, 3, 5, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300)  # passes shown of a sampling


class Task:
    """One corpus: its columns in memory and as files, its numbers, its optimum, its rival."""

    def __init__(self, name, options, folder):
        self.name, self.options, self.preset = name, options, PRESETS[name]
        self.train, self.test = (half[: options.sentences] for half in datasets.sentences(name))
        self.folder = folder / name
        self.folder.mkdir()
        self.train_file, self.test_file = self.folder / "train.txt", self.folder / "test.txt"
        datasets.write_columns(self.train, self.train_file)
        datasets.write_columns(self.test, self.test_file)

    def say(self, *words):
        print(f"{self.name}:", *words, file=sys.stderr, flush=True)

    def model(self, **settings):
        settings = {"n_jobs": self.options.threads, "max_seconds": self.options.patience} | settings
        return make_model(self.preset, **settings)

    @cached_property
    def data(self):
        return self.model().encode_training(*self.train.without_last())

    @cached_property
    def problem(self):
        return self.model().problem(self.data)

    def excess(self, value):
        """(P - P*) / P*."""
        return (value - self.best) / self.best

    @cached_property
    def best(self):
        """P* to a relative PRECISION, proven; kept, for it takes longer than all else."""
        columns = self.data.sequences.rows.n_columns
        path = datasets.CACHE / f"tagging-{self.name}-{len(self.train)}-{columns}-c2-{C2:g}.npz"
        if not path.exists():
            self.say(f"the optimum, to {PRECISION:g}")
            certificate = fit(self.model(tol=PRECISION, max_iter=100_000, max_seconds=None), self.data)
            value = self.problem.total * certificate.certificate_.primal
            datasets.CACHE.mkdir(parents=True, exist_ok=True)
            np.savez(path, value=value, proven=certificate.certificate_.relative_gap)
        self.proven = float(np.load(path)["proven"])
        return float(np.load(path)["value"])

    @cached_property
    def fitted(self):
        """A model to tag with, or to compile kernels by; how exact it is does not change its speed."""
        return fit(self.model(tol=TARGETS[0]), self.data)

    @cached_property
    def rival(self):
        """CRFsuite with all sentences appended, and the seconds of reading, attributes and appending."""
        return load_rival(self.train_file, self.preset)

    @cached_property
    def truth(self):
        return labels_of(self.test)

    def score(self, predicted):
        """F1 of spans; of parts of speech, which are no spans, accuracy."""
        from fenchel.spans import span_scores

        scores = span_scores(self.truth, predicted)
        return scores.accuracy if self.preset == "pos" else scores.f1

    def rival_score(self, path):
        tagger = open_tagger(path)
        return self.score([tagger.tag(attributes) for attributes in rival_items(self.test_file, self.preset)])


def make_model(preset, **settings):
    from fenchel import ChainCRF

    return ChainCRF(C=1.0 / (2.0 * C2), template=preset, **settings)


def fit(model, data):
    """The model fitted; a run that ends at a limit says so by its certificate, not by a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit_encoded(data)


def warm_up(preset, path, **settings):
    """Compile: read, encode, fit and predict a few sentences; the kernels are the same for all."""
    from fenchel.io.columns import read_columns

    X, y = read_columns(path)[:FEW].without_last()
    fit_model = make_model(preset, tol=0.1, max_iter=20, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_model.fit(X, y).predict(X)


def labels_of(tokens):
    return [[token[-1] for token in sentence] for sentence in tokens.sentences()]


def rival_items(path, preset):
    """Yield the attributes of each sentence of a column file with labels, by the Python route."""
    for sentence in read_sentences(path):
        yield attributes_of(preset, [fields[:-1] for fields in sentence])


def load_rival(path, preset):
    """(CRFsuite, seconds of reading, of making attributes, of appending)."""
    looks_of.cache_clear()
    rival, clock = CRFsuite(), time.perf_counter
    start = clock()
    made = appended = 0.0
    for sentence in read_sentences(path):
        before = clock()
        attributes = attributes_of(preset, [fields[:-1] for fields in sentence])
        between = clock()
        rival.append(attributes, [fields[-1] for fields in sentence])
        made += between - before
        appended += clock() - between
    return rival, (clock() - start - made - appended, made, appended)


def timed(action):
    """(wall-clock seconds, what the action gives)."""
    start = time.perf_counter()
    value = action()
    return time.perf_counter() - start, value


def table(header, lines):
    """A Markdown table, its columns aligned."""
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    aligns = [str.ljust] + [str.rjust] * (len(header) - 1)
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    body = [[pad(c, w) for pad, c, w in zip(aligns, line, widths, strict=True)] for line in [header, *lines]]
    return "\n".join("| " + " | ".join(line) + " |" for line in [body[0], rule, *body[1:]])


# ---- attributes


def extraction(task):
    """Seconds from a column file to what the trainer wants."""
    from fenchel.io.columns import read_columns

    warm_up(task.preset, task.train_file)
    runs = []
    for _ in range(task.options.repeat):
        reading, tokens = timed(partial(read_columns, task.train_file))
        encoding, data = timed(lambda tokens=tokens: task.model().encode_training(*tokens.without_last()))
        runs.append((reading + encoding, reading, encoding))
    total, reading, encoding = min(runs)
    lines = [["fenchel", f"{total:.2f}", f"{reading:.2f}", f"{encoding:.2f}", "-"]]
    facts = f"{len(task.train):,} sentences, {task.train.n_tokens:,} tokens, "
    facts += f"{data.sequences.rows.n_columns:,} attributes, {data.classes.size} labels"
    if not task.options.skip_rivals:
        seconds = task.rival[1]
        check_attributes(task, data.source.names())
        lines.append(["Python, CRFsuite", *(f"{each:.2f}" for each in (sum(seconds), *seconds))])
        facts += "; those of the Python function are the same"
    header = ["route", "s in all", "reading", "attributes", "Trainer.append"]
    return f"### {task.name}: attributes\n\n{facts}.\n\n{table(header, lines)}"


def check_attributes(task, names):
    """Refuse to compare trainers that see different attributes."""
    found = {name for rows in rival_items(task.train_file, task.preset) for row in rows for name in row}
    odd = sorted(found ^ set(names))
    if odd:
        raise SystemExit(f"{task.name}: only one of fenchel and the Python function has attribute {odd[0]!r}")


# ---- training


def training(task):
    """Seconds to come within the targets of the optimum, and the score on the test set there."""
    best = task.best
    lines = [line for solver in task.options.solvers for line in our_lines(task, solver)]
    notes = []
    if not task.options.skip_rivals:
        lines += lbfgs_lines(task)
        for line, note in (sgd_line(task), perceptron_line(task)):
            lines += line
            notes += note
    header = ["trainer"]
    for target in TARGETS:
        header += [f"s to {target:.0e}", "excess", score_name(task)]
    head = f"### {task.name}: training\n\nOptimum {best:.7g}, proven to {task.proven:.1e}"
    return "\n\n".join([f"{head}; {task.problem.dim:,} weights.", table(header, lines), *notes])


def score_name(task):
    return "accuracy" if task.preset == "pos" else "F1"


def cells(seconds, excess, score=None):
    return [f"{seconds:.2f}", f"{excess:.1e}", "-" if score is None else f"{100 * score:.2f}"]


def our_lines(task, solver):
    """fenchel: a whole fit_encoded with tol = target, which it certifies; best of the repeats."""
    warm_up(task.preset, task.train_file, solver=solver, n_jobs=task.options.threads)
    line = []
    X, _ = task.test.without_last()
    for target in TARGETS:
        task.say(f"fenchel {solver} to {target:g}")
        runs = [
            timed(lambda tol=target: fit(task.model(solver=solver, tol=tol, max_iter=100_000), task.data))
            for _ in range(task.options.repeat)
        ]
        seconds, model = min(runs, key=lambda run: run[0])
        if not model.certificate_.converged:
            line += ["-"] * (3 * len(TARGETS) - len(line))
            break
        excess = task.excess(task.problem.total * model.certificate_.primal)
        line += cells(seconds, excess, task.score(model.predict(X)))
    name = model.trace_.solver
    return [[f"fenchel {solver}" + f" ({name})" * (name != solver), *line]]


def lbfgs_lines(task):
    """CRFsuite's L-BFGS: one long run tells the iterations; runs of so many give scores and whole seconds."""
    rival, path = task.rival[0], task.folder / "lbfgs.model"
    task.say("crfsuite lbfgs")
    log = rival.train(path, "lbfgs", c2=C2, epsilon=1e-9, delta=TARGETS[-1] / 100, max_iterations=2000)
    logged, whole = ["crfsuite lbfgs, by its log"], ["crfsuite lbfgs, whole call"]
    for target in TARGETS:
        k = log.first((1.0 + target) * task.best)
        if k is None:
            logged, whole = logged + ["-"] * 3, whole + ["-"] * 3
            continue
        task.say(f"crfsuite lbfgs, {k} iterations")
        again = rival.train(path, "lbfgs", c2=C2, max_iterations=k, epsilon=1e-9, delta=1e-12)
        excess, score = task.excess(log.steps[k - 1][1]), task.rival_score(path)
        logged += cells(log.steps[k - 1][0], excess, score)
        whole += cells(again.seconds, task.excess(again.steps[-1][1]), score)
    return [logged, whole]


def sgd_line(task):
    """CRFsuite's SGD: seconds where its own estimate reaches the targets; a note says what it really reached."""
    path = task.folder / "l2sgd.model"
    task.say("crfsuite l2sgd")
    log = task.rival[0].train(path, "l2sgd", c2=C2, max_iterations=task.options.epochs)
    line = ["crfsuite l2sgd, by its log"]
    for target in TARGETS:
        k = log.first((1.0 + target) * task.best)
        line += ["-"] * 3 if k is None else cells(log.steps[k - 1][0], task.excess(log.steps[k - 1][1]))
    w = crfsuite_weights(path, task.data.source.names(), task.data.classes.tolist())
    true = task.problem.total * task.problem.value_at(w)[0]
    seconds, estimate = log.steps[-1]
    note = (
        "l2sgd logs the sum of losses met on the way, before each step, so its excess is an estimate. After "
        f"{len(log.steps)} epochs ({seconds:.2f} s, search for the learning rate included) it logs an excess "
        f"of {task.excess(estimate):.1e}; that of the weights it stores is {task.excess(true):.1e}, "
        f"{score_name(task)} {100 * task.rival_score(path):.2f}."
    )
    return [line], [note]


def perceptron_line(task):
    """CRFsuite's averaged perceptron has another objective: its score against seconds only."""
    path, parts = task.folder / "ap.model", []
    for epochs in PERCEPTRON:
        task.say(f"crfsuite ap, {epochs} epochs")
        log = task.rival[0].train(path, "ap", max_iterations=epochs)
        parts.append(f"{100 * task.rival_score(path):.2f} after {log.steps[-1][0]:.2f} s ({epochs} epochs)")
    return [], [f"The averaged perceptron, which minimises something else: {score_name(task)} {', '.join(parts)}."]


# ---- tagging


def tagging(task):
    """Sentences per second on one thread, from a column file to labels."""
    warm_up(task.preset, task.train_file, n_jobs=1)
    lines = [our_tagging(task)] + ([] if task.options.skip_rivals else rival_tagging(task))
    header = ["tagger", "s", "sentences/s", "tokens/s"]
    facts = f"{len(task.test):,} sentences, {task.test.n_tokens:,} tokens, one thread, best of {RUNS} runs."
    return f"### {task.name}: tagging\n\n{facts}\n\n{table(header, lines)}"


RUNS = 3


def speed(task, name, seconds):
    rates = (count / seconds for count in (len(task.test), task.test.n_tokens))
    return [name, f"{seconds:.3f}", *(f"{rate:,.0f}" for rate in rates)]


def our_tagging(task):
    """The model is loaded anew for each run: it remembers the words it has seen."""
    import fenchel
    from fenchel.io.columns import read_columns

    path = task.folder / "fenchel.model"
    task.fitted.set_params(n_jobs=1).save(path)
    times = []
    for _ in range(RUNS):
        model = fenchel.load(path)
        times.append(timed(lambda: model.predict(read_columns(task.test_file).without_last()[0]))[0])
    return speed(task, "fenchel: columns to labels", min(times))


def rival_tagging(task):
    """CRFsuite's tagger behind the Python route, and alone on attributes that are there already."""
    path = task.folder / "lbfgs.model"
    if not path.exists():
        task.rival[0].train(path, "lbfgs", c2=C2, max_iterations=10)
    tagger, whole, alone = open_tagger(path), [], []
    for _ in range(RUNS):
        looks_of.cache_clear()
        route = partial(rival_items, task.test_file, task.preset)
        whole.append(timed(lambda: [tagger.tag(attributes) for attributes in route()])[0])
    ready = list(route())
    for _ in range(RUNS):
        alone.append(timed(lambda: [tagger.tag(attributes) for attributes in ready])[0])
    return [
        speed(task, "Python and CRFsuite: columns to labels", min(whole)),
        speed(task, "CRFsuite: lists of attributes to labels", min(alone)),
    ]
