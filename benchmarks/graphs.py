"""Graph CRFs on handwritten words (OCR): skip edges and second order beside chains, and solvers one by one.

    FENCHEL_DATA=folder python benchmarks/graphs.py [--words 626] [--parts shapes,solvers,dense]
        [--patience 120] [--output file]

shapes    letters right on the test words, and what a fit to 0.1 % takes, for these graphs over the letters:
          chain         neighbours, as ChainCRF
          distance 2    and edges between letters with one between, of a kind of their own
          alike         and edges between letters of a word, not neighbours, that look alike: images of equal
                        letters, if all is well; an edge attribute tells them from the others
          second order  and cliques of three
          (words come evenly from the nine training folds, by default 626 of 6,251)
solvers   each solver on the graphs of distance 2, to 1 % and to 0.1 %
dense     nodes that are dense rows of numbers (made up: 200 graphs of ten nodes): what `auto` should take

Kernels are compiled before any clock starts. Processor seconds are those of all threads.
"""

import argparse
from pathlib import Path

import numpy as np

import datasets
from margin import describe, fit
from measure import machine
from race import publish
from tagging import table

C = 1.0
TARGETS = (1e-2, 1e-3)
SOLVERS = {
    "log": ("eg-gap", "eg", "sdca", "lbfgs", "sag-nus"),
    "hinge": ("cd-outputs", "cutting-plane", "sdca", "eg-gap"),
}
ALIKE = 0.5  # share of pixels that two images must have in common, of those that either has
HEADER = ["s", "processor s", "passes", "oracle calls a graph", "objective", "proven within"]
FEW = 10  # graphs to compile kernels with


def neighbours(X):
    return [(t, t + 1) for t in range(X.shape[0] - 1)]


def skips(X):
    return [(t, t + 2) for t in range(X.shape[0] - 2)]


def alike(X):
    """Pairs of letters, not neighbours, whose images overlap."""
    common = (X @ X.T).toarray()
    sizes = common.diagonal()
    either = sizes[:, None] + sizes - common
    T = X.shape[0]
    return [(a, b) for a in range(T) for b in range(a + 2, T) if common[a, b] >= ALIKE * either[a, b]]


def two_kinds(X, others):
    """Neighbours and other edges, told apart by an attribute."""
    from fenchel import Graph

    near, far = neighbours(X), others(X)
    return Graph(X, near + far, [[]] * len(near) + [["skip"]] * len(far))


def shaped(name, words):
    from fenchel import Graph

    make = {
        "chain": Graph.chain,
        "distance 2": lambda X: two_kinds(X, skips),
        "alike": lambda X: two_kinds(X, alike),
        "second order": lambda X: Graph.chain(X, order=2),
    }[name]
    return [make(X) for X in words]


def fitted(graphs, y, patience, c=C, **settings):
    """A model, wall-clock and processor seconds; kernels were compiled on a few graphs."""
    from fenchel import GraphCRF

    limits = {"max_seconds": patience, "max_iter": 100_000}
    fit(GraphCRF(c, **settings | {"tol": 0.0, "max_iter": 30}), (graphs[:FEW], y[:FEW]))
    return fit(GraphCRF(c, **settings | limits), (graphs, y))


def shapes(train, test, options):
    lines = []
    for name in ("chain", "distance 2", "alike", "second order"):
        graphs, tested = shaped(name, train[0]), shaped(name, test[0])
        model, *seconds = fitted(graphs, train[1], options.patience, tol=TARGETS[-1])
        right = f"{100 * model.score(tested, test[1]):.2f}"
        solver = f"`{model.trace_.solver}`"
        lines.append([name, solver, right, *describe(model, *seconds, len(graphs))])
    return f"## Shapes\n\n{table(['graph', 'solver', 'letters right, %', *HEADER], lines)}"


def solvers(train, test, options):
    graphs, lines = shaped("distance 2", train[0]), []
    for loss, names in SOLVERS.items():
        for name in names:
            for tol in TARGETS:
                run = fitted(graphs, train[1], options.patience, loss=loss, solver=name, tol=tol)
                lines.append([loss, f"`{name}`", f"{tol:g}", *describe(*run, len(graphs))])
    return f"## Solvers, distance 2\n\n{table(['loss', 'solver', 'tol', *HEADER], lines)}"


def dense(train, test, options):
    """Exponentiated gradient and L-BFGS by the number of attributes and C, to 0.1 %."""
    lines = []
    for attributes in (5, 50, 300):
        graphs, y = made_up(attributes)
        for c in (0.1, 10.0):
            for name in ("eg-gap", "lbfgs"):
                run = fitted(graphs, y, options.patience, c=c, solver=name, tol=TARGETS[-1])
                lines.append([str(attributes), f"{c:g}", f"`{name}`", *describe(*run, len(graphs))])
    return f"## Dense nodes\n\n{table(['attributes', 'C', 'solver', *HEADER], lines)}"


def made_up(attributes, n=200, nodes=10, labels=5):
    """Graphs of ten nodes, a circle and a few chords; labels follow the attributes and the neighbours."""
    from fenchel import Graph

    rng = np.random.default_rng(0)
    W, graphs, truth = rng.normal(size=(attributes, labels)), [], []
    edges = [(t, (t + 1) % nodes) for t in range(nodes)] + [(0, 5), (2, 7)]
    for _ in range(n):
        X = rng.normal(size=(nodes, attributes))
        y = (X @ W / attributes**0.5 + rng.normal(size=(nodes, labels))).argmax(axis=1)
        y = np.where(rng.uniform(size=nodes) < 0.3, np.roll(y, 1), y)
        graphs.append(Graph(X, edges))
        truth.append(y.tolist())
    return graphs, truth


PARTS = {"shapes": shapes, "solvers": solvers, "dense": dense}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--words", type=int, default=626)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--patience", type=float, default=120.0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    facts = ", ".join(f"{name} {value}" for name, value in machine().items())
    (X, y), test = datasets.letters()
    step = max(len(X) // options.words, 1)  # equal words stand together: some of each
    train = X[::step], y[::step]
    made = (PARTS[part](train, test, options) for part in options.parts.split(","))
    head = f"# Graph CRFs on {len(train[0])} handwritten words, C = {C:g}\n\n{facts}"
    publish((text for texts in ([head], made) for text in texts), options.output)


if __name__ == "__main__":
    main()
