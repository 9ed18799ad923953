"""collins2008: exponentiated gradient, Figures 4 to 15, Tables 2 and 3."""

from experiments.collins2008.lbfgs import FIG11, FIG14
from experiments.collins2008.margin import FIG13
from experiments.collins2008.mnist import FIG4, FIG5, FIG6, FIG8
from experiments.collins2008.orders import BATCH, FIG7
from experiments.collins2008.parsing import FIG12, FIG15, TABLE3
from experiments.collins2008.path import TABLE2
from experiments.collins2008.sgd import FIG9, FIG10

ITEMS = (
    *(FIG4, FIG5, FIG6, FIG7, BATCH, FIG8, TABLE2, FIG9, FIG10, FIG11, FIG14),
    *(FIG12, FIG15, TABLE3, FIG13),
)
