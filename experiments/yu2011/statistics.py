"""yu2011 Table 2: the documents."""

from experiments import tasks
from experiments.claims import Claim, Item, Table, Verdict, chosen
from experiments.lab import Lab
from experiments.yu2011.logistic import run_logistic

PRINTED = {  # instances, features, non-zeros, C
    "a9a": (32_561, 123, 451_592, 4),
    "real-sim": (72_309, 20_958, 3_709_083, 8),
    "yahoo-japan": (176_203, 832_026, 23_506_415, 4),
    "rcv1": (677_399, 47_236, 49_556_258, 8),
}


def counts(lab: Lab) -> dict:
    """{set: (instances, features, non-zeros, C)}, as the traces tell them."""

    def count(task):
        run = run_logistic(lab, task)["TRON"]
        return run.n, run.d, run.nnz, tasks.DOCUMENTS[task.name]

    return lab.each(tasks.document_tasks(lab), count)


def count_table(results) -> list[Table]:
    rows = [
        (who, name, *(f"{n:,}" for n in found[:3]), f"{found[3]:g}")
        for who, of in (("paper", PRINTED), ("here", results))
        for name, found in of.items()
    ]
    return [Table(("", "set", "instances l", "features n", "non-zeros #nz", "C"), rows)]


def same_a9a(results) -> Verdict:
    found = chosen(results, ("a9a",))["a9a"]
    return Verdict(found == PRINTED["a9a"], ", ".join(f"{n:,g}" for n in found))


TABLE2 = Item(
    "yu2011.table2",
    "Statistics of data (real-valued features)",
    "Instances, features, non-zeros and the C of cross-validation; Table 4 is huang2010's Table 3.",
    counts,
    None,
    count_table,
    (Claim("a9a: l = 32,561, n = 123, #nz = 451,592, C = 4", same_a9a),),
    "real-sim, yahoo-japan and rcv1 are not there; imdb and 20newsgroups take their place.",
)
