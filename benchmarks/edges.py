"""What lines B of a template cost: attributes of transitions, beside the same template without them.

    FENCHEL_DATA=folder python benchmarks/edges.py [--sentences N] [--solver auto] [--tol 1e-3]
        [--lines word,tag,tags] [--weights all,observed] [--repeat 1]

CoNLL-2000 with a template as CRF++ and Wapiti are given it: words and parts of speech around the token, their
pairs, and B, the plain transitions. Then the same with one line more: B%x[0,0] (a table of pairs of labels
for each word), B%x[0,1] (for each part of speech), B%x[-1,1]/%x[0,1] (for each pair of them). Whole
`fit_encoded`, kernels compiled before, certified; seconds are the clock's, and the processor's.
"""

import argparse
import time

import datasets
from corpus import C2, fit
from measure import machine

UNARY = [f"U0{k}:%x[{k - 2},0]" for k in range(5)]
UNARY += ["U05:%x[-1,0]/%x[0,0]", "U06:%x[0,0]/%x[1,0]"]
UNARY += [f"U1{k}:%x[{k - 2},1]" for k in range(5)]
UNARY += [f"U2{k}:%x[{k - 2},1]/%x[{k - 1},1]" for k in range(4)]
UNARY += [f"U3{k}:%x[{k - 2},1]/%x[{k - 1},1]/%x[{k},1]" for k in range(3)]
LINES = {
    "none": [],
    "word": ["B01:%x[0,0]"],
    "tag": ["B01:%x[0,1]"],
    "tags": ["B01:%x[-1,1]/%x[0,1]"],
    "both": ["B01:%x[0,0]", "B02:%x[0,1]"],
}
FEW = 50  # sentences, to compile kernels with


def main(options):
    """Print a table: a line for each template and kind of weights."""
    train, test = datasets.sentences("conll2000")
    X, y = train[: options.sentences].without_last()
    print(f"{machine()}\n\n{len(X):,} sentences, c2 = {C2:g}, {options.solver} to {options.tol:g}\n")
    print("| lines B | weights there are | solver | passes | s | processor s | of without | accuracy |")
    print("|---|--:|---|--:|--:|--:|--:|--:|")
    for weights in options.weights.split(","):
        alone = None
        for name in ["none", *options.lines.split(",")]:
            run = measure(options, name, weights == "observed", X, y, test)
            alone = run[0] if alone is None else alone
            tell(f"{name}, {weights}", run, alone)


def measure(options, name, observed, X, y, test):
    """(seconds, processor seconds, model, weights, accuracy)."""
    few = make(options, name, observed, tol=0.0, max_iter=20)
    fit(few, few.encode_training(X[:FEW], y[:FEW]))
    model = make(options, name, observed)
    data = model.encode_training(X, y)
    problem, runs = model.problem(data), []
    for _ in range(options.repeat):
        wall, processor = time.perf_counter(), time.process_time()
        fit(model, data)
        runs.append((time.perf_counter() - wall, time.process_time() - processor))
    mask = problem.structure.mask
    return (
        *min(runs),
        model,
        problem.dim if mask is None else int(mask.sum()),
        model.score(*test.without_last()),
    )


def make(options, name, observed, tol=None, max_iter=1000):
    from fenchel import ChainCRF
    from fenchel.features.templates import parse_template

    template = parse_template("\n".join([*UNARY, "B", *LINES[name]]), "crf++")
    settings = {
        "observed": observed,
        "solver": options.solver,
        "max_iter": max_iter,
        "n_jobs": options.threads,
    }
    return ChainCRF(c2=C2, template=template, tol=options.tol if tol is None else tol, **settings)


def tell(name, run, alone):
    seconds, processor, model, weights, score = run
    cells = name, f"{weights:,}", model.trace_.solver, f"{model.certificate_.passes:.1f}", f"{seconds:.2f}"
    cells += f"{processor:.2f}", f"{seconds / alone:.2f}", f"{100 * score:.2f}"
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=int, default=None)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--lines", default="word,tag,tags")
    parser.add_argument("--weights", default="all,observed")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--threads", type=int, default=None)
    main(parser.parse_args())
