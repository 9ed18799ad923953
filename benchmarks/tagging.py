"""Linear-chain CRFs, ours and CRFsuite's: attributes, training, tagging and memory, on the same objective.

    FENCHEL_DATA=folder python benchmarks/tagging.py [--sets conll2000,ner,pos]
        [--parts extract,train,tag,memory] [--solvers auto,sdca,lbfgs] [--observed] [--sampling]
        [--sentences N] [--repeat 1] [--patience 1200] [--threads N] [--epochs 1,2,5,10,20,50]
        [--skip-rivals] [--output file]

P(w) = sum_i loss_i + c2 ||w||^2 with c2 = 1 and a weight for each pair of attribute and label, and of labels,
or with --observed, which is CRFsuite's default, for those that occur: fenchel's C is 1/(2 c2). Attributes are
those of the presets chunk, ner and pos; CRFsuite gets the same ones, which is checked. fenchel's kernels are
compiled before any clock starts.
"""

import argparse
import resource
import sys
import tempfile
import time
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path

from corpus import C2, PRESETS, TARGETS, Corpus, fit, load_rival, make_model, rival_items, warm_up
from gap_sampling import by_epoch, follow, passes_to
from measure import machine
from memory import fresh
from race import publish
from rivals import crfsuite_weights, looks_of, open_tagger

RUNS = 3  # of a tagger
PERCEPTRON = (5, 20, 50)  # epochs


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


def extraction(corpus):
    """Seconds from a column file to what the trainer wants."""
    from fenchel.io.columns import read_columns

    warm_up(corpus.preset, corpus.train_file)
    runs = []
    for _ in range(corpus.options.repeat):
        reading, tokens = timed(partial(read_columns, corpus.train_file))
        encoding, data = timed(lambda tokens=tokens: corpus.model().encode_training(*tokens.without_last()))
        runs.append((reading + encoding, reading, encoding))
    total, reading, encoding = min(runs)
    lines = [["fenchel", f"{total:.2f}", f"{reading:.2f}", f"{encoding:.2f}", "-"]]
    facts = f"{len(corpus.train):,} sentences, {corpus.train.n_tokens:,} tokens, "
    facts += f"{data.sequences.rows.n_columns:,} attributes, {data.classes.size} labels"
    if not corpus.options.skip_rivals:
        seconds = corpus.rival[1]
        check_attributes(corpus, data.source.names())
        lines.append(["Python, CRFsuite", *(f"{each:.2f}" for each in (sum(seconds), *seconds))])
        facts += "; those of the Python function are the same"
    header = ["route", "s in all", "reading", "attributes", "Trainer.append"]
    return f"### {corpus.name}: attributes\n\n{facts}.\n\n{table(header, lines)}"


def check_attributes(corpus, names):
    """Refuse to compare trainers that see different attributes."""
    found = {name for rows in rival_items(corpus.train_file, corpus.preset) for row in rows for name in row}
    odd = sorted(found ^ set(names))
    if odd:
        raise SystemExit(
            f"{corpus.name}: only one of fenchel and the Python function has attribute {odd[0]!r}"
        )


# ---- training


def training(corpus):
    """Seconds to come within the targets of the optimum, and the score on the test set there."""
    best = corpus.best
    lines = [line for solver in corpus.options.solvers for line in our_lines(corpus, solver)]
    notes = []
    if not corpus.options.skip_rivals:
        lines += lbfgs_lines(corpus)
        others = () if corpus.options.observed else (sgd_line, perceptron_line)
        for line, note in (rival(corpus) for rival in others):
            lines += line
            notes += note
    header = ["trainer"]
    for target in TARGETS:
        header += [f"s to {target:.0e}", "excess", corpus.score_name]
    head = f"### {corpus.name}: training\n\nOptimum {best:.7g}, proven to {corpus.proven:.1e}"
    return "\n\n".join([f"{head}; {corpus.n_weights:,} weights.", table(header, lines), *notes])


def cells(seconds, excess, score=None):
    return [f"{seconds:.2f}", f"{excess:.1e}", "-" if score is None else f"{100 * score:.2f}"]


def our_lines(corpus, solver):
    """fenchel: a whole fit_encoded with tol = target, which it certifies; best of the repeats."""
    warm_up(corpus.preset, corpus.train_file, solver=solver, n_jobs=corpus.options.threads, **corpus.weights)
    line = []
    X, _ = corpus.test.without_last()
    for target in TARGETS:
        corpus.say(f"fenchel {solver} to {target:g}")
        runs = [
            timed(lambda tol=target: fit(corpus.model(solver=solver, tol=tol, max_iter=100_000), corpus.data))
            for _ in range(corpus.options.repeat)
        ]
        seconds, model = min(runs, key=lambda run: run[0])
        if not model.certificate_.converged:
            line += ["-"] * (3 * len(TARGETS) - len(line))
            break
        excess = corpus.excess(corpus.problem.total * model.certificate_.primal)
        line += cells(seconds, excess, corpus.score(model.predict(X)))
    name = model.trace_.solver
    return [[f"fenchel {solver}" + f" ({name})" * (name != solver), *line]]


def lbfgs_lines(corpus):
    """CRFsuite's L-BFGS: one run tells the seconds of its iterations; the score is that of its last model."""
    rival, path = corpus.rival[0], corpus.folder / "lbfgs.model"
    corpus.say("crfsuite lbfgs")
    log = rival.train(path, "lbfgs", c2=C2, epsilon=1e-9, delta=TARGETS[-1] / 100, max_iterations=2000)
    alone, whole = ["crfsuite lbfgs, iterations"], ["crfsuite lbfgs, whole call"]
    final = corpus.rival_score(path)
    for target in TARGETS:
        k = log.first((1.0 + target) * corpus.best)
        if k is None:
            alone, whole = alone + ["-"] * 3, whole + ["-"] * 3
            continue
        (seconds, value), score = log.steps[k - 1], final if target == TARGETS[-1] else None
        alone += cells(seconds, corpus.excess(value), score)
        whole += cells(log.generating + seconds, corpus.excess(value), score)
    return [alone, whole]


def sgd_line(corpus):
    """CRFsuite's SGD: the shortest of some runs whose weights reach a target, and a note on all of them.

    Its log is no help: it adds up the losses met before each step, up to some percent above P.
    """
    runs = list(sgd_runs(corpus))
    line = ["crfsuite l2sgd, epochs"]
    for target in TARGETS:
        reached = next((run for run in runs if run[2] <= target), None)
        line += cells(*reached[1:4]) if reached else ["-"] * 3
    parts = [
        f"{epochs} epochs {each[0]:.2f} s, {each[1]:.1e} (logged {logged:.1e}), {100 * each[2]:.2f}"
        for epochs, *each, logged in runs
    ]
    note = f"l2sgd, seconds with the search for its learning rate, excess, {corpus.score_name}: "
    return [line], [note + "; ".join(parts) + "."]


def sgd_runs(corpus):
    """Yield (epochs, seconds, true excess, score, excess logged) of runs until one reaches all targets."""
    path = corpus.folder / "l2sgd.model"
    names, labels = corpus.data.source.names(), corpus.data.classes.tolist()
    for epochs in map(int, corpus.options.epochs):
        corpus.say(f"crfsuite l2sgd, {epochs} epochs")
        log = corpus.rival[0].train(path, "l2sgd", c2=C2, max_iterations=epochs)
        w = crfsuite_weights(path, names, labels)
        excess = corpus.excess(corpus.problem.total * corpus.problem.value_at(w)[0])
        seconds, logged = log.steps[-1]
        yield epochs, seconds, excess, corpus.rival_score(path), corpus.excess(logged)
        if excess <= TARGETS[-1]:
            return


def perceptron_line(corpus):
    """CRFsuite's averaged perceptron has another objective: its score against seconds only."""
    path, parts = corpus.folder / "ap.model", []
    for epochs in PERCEPTRON:
        corpus.say(f"crfsuite ap, {epochs} epochs")
        log = corpus.rival[0].train(path, "ap", max_iterations=epochs)
        parts.append(f"{100 * corpus.rival_score(path):.2f} after {log.steps[-1][0]:.2f} s ({epochs} epochs)")
    name = corpus.score_name
    return [], [f"The averaged perceptron, which minimises something else: {name} {', '.join(parts)}."]


# ---- tagging


def tagging(corpus):
    """Sentences per second on one thread, from a column file to labels."""
    warm_up(corpus.preset, corpus.train_file, n_jobs=1)
    lines = [our_tagging(corpus)] + ([] if corpus.options.skip_rivals else rival_tagging(corpus))
    header = ["tagger", "s", "sentences/s", "tokens/s"]
    facts = (
        f"{len(corpus.test):,} sentences, {corpus.test.n_tokens:,} tokens, one thread, best of {RUNS} runs."
    )
    return f"### {corpus.name}: tagging\n\n{facts}\n\n{table(header, lines)}"


def speed(corpus, name, seconds):
    rates = (count / seconds for count in (len(corpus.test), corpus.test.n_tokens))
    return [name, f"{seconds:.3f}", *(f"{rate:,.0f}" for rate in rates)]


def our_tagging(corpus):
    """The model is loaded anew for each run: it remembers the words it has seen."""
    import fenchel

    path = corpus.folder / "fenchel.model"
    corpus.fitted.set_params(n_jobs=1).save(path)
    times = []
    for _ in range(RUNS):
        model = fenchel.load(path)
        times.append(timed(partial(tag_file, model, corpus.test_file))[0])
    return speed(corpus, "fenchel: columns to labels", min(times))


def tag_file(model, path):
    from fenchel.io.columns import read_columns

    return model.predict(read_columns(path).without_last()[0])


def rival_tagging(corpus):
    """CRFsuite's tagger behind the Python route, and alone on attributes that are there already."""
    path = corpus.folder / "lbfgs.model"
    if not path.exists():
        corpus.rival[0].train(path, "lbfgs", c2=C2, max_iterations=10)
    tagger, whole, alone = open_tagger(path), [], []
    route = partial(rival_items, corpus.test_file, corpus.preset)
    for _ in range(RUNS):
        looks_of.cache_clear()
        whole.append(timed(lambda: [tagger.tag(attributes) for attributes in route()])[0])
    ready = list(route())
    for _ in range(RUNS):
        alone.append(timed(lambda: [tagger.tag(attributes) for attributes in ready])[0])
    return [
        speed(corpus, "Python and CRFsuite: columns to labels", min(whole)),
        speed(corpus, "CRFsuite: lists of attributes to labels", min(alone)),
    ]


# ---- memory


def memory(corpus):
    """Peak megabytes of training, each trainer in a process of its own."""
    lines = []
    for solver in corpus.options.solvers:
        corpus.say(f"memory of fenchel {solver}")
        lines.append([f"fenchel {solver}", *fresh(our_memory, corpus.train_file, corpus.preset, solver)])
    if not corpus.options.skip_rivals:
        corpus.say("memory of crfsuite")
        lines.append(["Python, crfsuite lbfgs", *fresh(rival_memory, corpus.train_file, corpus.preset)])
    lines = [[name, *(f"{1e-6 * each:,.0f}" for each in peaks)] for name, *peaks in lines]
    facts = f"Peaks so far in MB; the weights alone are {8e-6 * corpus.problem.dim:,.0f}. fenchel trains to "
    facts += f"{TARGETS[1]:g}, CRFsuite for 10 iterations, by when it has all its arrays."
    header = ["trainer", "imported, compiled", "data loaded", "trained"]
    return f"### {corpus.name}: memory\n\n{facts}\n\n{table(header, lines)}"


def our_memory(path, preset, solver):
    from fenchel.io.columns import read_columns

    warm_up(preset, path, solver=solver)
    peaks = [peak()]
    model = make_model(preset, solver=solver, tol=TARGETS[1])
    data = model.encode_training(*read_columns(path).without_last())
    peaks.append(peak())
    fit(model, data)
    return [*peaks, peak()]


def rival_memory(path, preset):
    import pycrfsuite  # noqa: F401 - what it takes by itself

    peaks = [peak()]
    rival, _ = load_rival(path, preset)
    peaks.append(peak())
    rival.train(path.with_name("memory.model"), "lbfgs", c2=C2, max_iterations=10)
    return [*peaks, peak()]


def peak():
    """The most memory this process ever held, in bytes.

    Linux lets ru_maxrss begin at what the parent held, which is much by now; VmHWM begins anew.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(found.split()[1])
    return (1 if sys.platform == "darwin" else 1024) * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# ---- sampling


def sampling(corpus):
    """SDCA by gaps and at random: passes to each target, and the estimate of the gap against the true gap."""
    from fenchel import solvers

    rows = {}
    for kind in ("gap", "uniform"):
        corpus.say(f"sdca, sampling {kind}")
        rows[kind] = follow(corpus.problem, solvers.SDCA(sampling=kind), TARGETS[-1])
    facts = "SDCA, certified after each epoch of n steps (that pass is not counted). "
    facts += (
        "The estimate is the sum of the block gaps as last seen, less what those half a pass old have shrunk."
    )
    head = f"### {corpus.name}: sampling\n\n{facts}"
    return "\n\n".join([head, table(*passes_to(rows, TARGETS)), table(*by_epoch(rows))])


# ---- all


PARTS = {"extract": extraction, "train": training, "tag": tagging, "memory": memory, "sampling": sampling}


def preamble(options):
    """The head of the results: what was measured, and on what."""
    facts = machine()
    try:
        facts["python-crfsuite"] = version("python-crfsuite")
    except PackageNotFoundError:
        facts["python-crfsuite"] = "not installed"
    text = ", ".join(f"{key} {value}" for key, value in facts.items())
    threads = "as it likes" if options.threads is None else options.threads
    few = f"Only the first {options.sentences} sentences of each set. " if options.sentences else ""
    return (
        "# Taggers: linear-chain conditional random fields, ours and CRFsuite's\n\n"
        f"P(w) = sum of losses + c2 |w|^2, c2 = {C2:g}, a weight for each pair of attribute and label and\n"
        "for each pair of labels; excess is (P - P*)/P*. fenchel: wall-clock seconds of a whole\n"
        "`fit_encoded` with tol = the target, which it proves (kernels compiled before). CRFsuite: seconds\n"
        "until the first iteration that reaches the target; the whole call also generates features (storing\n"
        "the model is not counted). Scores are of the test set, in percent.\n\n"
        f"{few}Machine: {text}; CRFsuite has one thread, fenchel trains with threads: {threads}.\n"
    )


def arguments():
    """Parse the command line."""
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    listed = partial(str.split, sep=",")
    made.add_argument("--sets", type=listed, default=list(PRESETS), help="comma separated (default: all)")
    made.add_argument(
        "--parts", type=listed, default=list(PARTS)[:-1], help="comma separated, of " + ", ".join(PARTS)
    )
    made.add_argument("--sampling", action="store_true", help="the part sampling too")
    made.add_argument("--solvers", type=listed, default=["auto", "sdca", "lbfgs"], help="fenchel's")
    made.add_argument("--observed", action="store_true", help="only weights of pairs that occur")
    made.add_argument("--sentences", type=int, help="use only so many of each set")
    made.add_argument("--repeat", type=int, default=1, help="runs of which the best counts (default: 1)")
    made.add_argument("--patience", type=float, default=1200.0, help="longest fit, seconds (default: 1200)")
    made.add_argument("--threads", type=int, help="fenchel's in training (default: as it likes)")
    made.add_argument(
        "--epochs",
        type=listed,
        default=["1", "2", "5", "10", "20", "50"],
        help="runs of l2sgd (default: 1,2,5,10,20,50)",
    )
    made.add_argument("--skip-rivals", action="store_true", help="leave CRFsuite out")
    made.add_argument("--output", type=Path, help="file to write")
    options = made.parse_args()
    options.parts += ["sampling"] * (options.sampling and "sampling" not in options.parts)
    for kind, known in (("sets", PRESETS), ("parts", PARTS)):
        unknown = [name for name in getattr(options, kind) if name not in known]
        if unknown:
            made.error(f"unknown {unknown[0]!r} in --{kind}; there are {', '.join(known)}")
    return options


def sections(options, folder):
    """Yield the sections of each set, one by one."""
    for name in options.sets:
        corpus = Corpus(name, options, folder)
        for part in options.parts:
            yield PARTS[part](corpus)


def main():
    """Measure, and print each section as soon as it is complete."""
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        publish(chain([preamble(options)], sections(options, Path(folder))), options.output)


if __name__ == "__main__":
    main()
