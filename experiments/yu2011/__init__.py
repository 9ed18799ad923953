"""yu2011: dual coordinate descent for LR and maximum entropy, Figures 2 to 4, Tables 2 and 3."""

from experiments.yu2011.bisection import FIG4
from experiments.yu2011.entropy import FIG3
from experiments.yu2011.logistic import FIG2, FIRST_Z, TABLE3
from experiments.yu2011.statistics import TABLE2

ITEMS = (TABLE2, FIG2, TABLE3, FIRST_Z, FIG3, FIG4)
