"""collins2008 7.1.2: the path of constants on MNIST, Table 2."""

from math import inf

from experiments.claims import Claim, Item, Verdict, number
from experiments.collins2008.family import fit_path, passes_to, path_table
from experiments.collins2008.mnist import MNIST, named
from experiments.lab import Lab

PATH = [1000.0 * 0.7**k for k in range(24)]
PRINTED_PATH = (  # iterations, error
    (11, 0.1011), (3, 0.0968), (4.01, 0.0926), (4.09, 0.0895), (4.24, 0.0869), (4.32, 0.0846),
    (4.3, 0.0829), (4.29, 0.0809), (4.32, 0.0803), (4.33, 0.0775), (4.34, 0.0768), (4.36, 0.0758),
    (4.38, 0.076), (5.47, 0.0744), (5.49, 0.0741), (5.51, 0.0732), (6.6, 0.0736), (7.69, 0.0735),
    (8.78, 0.0729), (12, 0.074), (15.24, 0.0747), (20.61, 0.0749), (27.05, 0.074), (35.63, 0.0747),
)  # fmt: skip


def table2(lab: Lab) -> dict:
    def compute():
        constants = PATH[:4] if lab.quick else PATH
        of = MNIST.task(1.0, lab.quick)
        return lab.measure(
            of, "path", lambda: fit_path(MNIST, lab.quick, constants, 60.0), constants=constants
        )

    cold = {C: passes_to(MNIST.eg(lab, C), 1e-3) for C in (100.0, 10.0, 1.0)}
    return {"rows": named(lab, compute), "cold": cold}


def few_iterations(found) -> Verdict:
    most = max(passes for C, passes, *_ in found["rows"] if 13.8 <= C <= 700.5)
    return Verdict(most <= 5.0, f"at most {most:.2f}")


def whole_path(found) -> Verdict:
    total = sum(passes for _, passes, *_ in found["rows"])
    return Verdict(
        total <= 211.17, f"{len(found['rows'])} constants in {total:.1f} passes, 211.17 in the paper"
    )


def at_798(found) -> Verdict:
    passes = next((p for C, p, *_ in found["rows"] if abs(C - 0.7979) < 1e-3), inf)
    return Verdict(passes <= 15.24, f"{number(passes)} passes")


def warm_pays(found) -> Verdict:
    """Passes from the uniform distribution against those of the whole path down to a smaller constant."""
    lines, holds = [], True
    for C, cold in found["cold"].items():
        last = next((k for k, row in enumerate(found["rows"]) if row[0] <= C), len(found["rows"]) - 1)
        alone = found["rows"][last][1]
        holds &= alone < cold
        lines.append(f"C = {found['rows'][last][0]:.3g}: {alone:.1f}, from the start {number(cold)} at {C:g}")
    return Verdict(holds, f"passes to 0.1 %, {'; '.join(lines)}")


def best_error(found) -> Verdict:
    C, _, _, score = max(found["rows"], key=lambda row: row[3])
    return Verdict(
        0.5 <= C <= 5.0, f"best at C = {C:.4g}: {100 * (1 - score):.2f} % (the paper: 7.29 % at 1.628)"
    )


TABLE2 = Item(
    "collins2008.table2",
    "The path of 24 constants on MNIST",
    "“for 13.84 ≤ C ≤ 700 at most 5 iterations are required for convergence; even "
    "for C = 0.798 only 15.24 iterations; "
    "a range of 25 different values of C between 1000 and 0.274 can be optimized "
    "with 211.17 effective iterations.”",
    table2,
    None,
    lambda found: path_table(found, PRINTED_PATH),
    (
        Claim("The benefits of using the previous dual values at each new value of C are clear", warm_pays),
        Claim("for 13.84 ≤ C ≤ 700 at most 5 iterations are required for convergence", few_iterations),
        Claim(
            "even for C = 0.798 only 15.24 iterations are required",
            at_798,
            "Both visit every example fifteen times (so do we with two other seeds, 15.59); ours tries a "
            "second point at 3.9 % of the visits, the paper's at 1.6 %.",
        ),
        Claim(
            "values of C between 1000 and 0.274 can be optimized with 211.17 effective iterations", whole_path
        ),
        Claim("the optimal error is reached at C = 1.62841 (here: between .5 and 5)", best_error),
    ),
)
