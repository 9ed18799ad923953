"""huang2010: iterative scaling and coordinate descent, Figures 2 to 4, Tables 2 and 3, permutations, IIS."""

from experiments.huang2010.costs import IIS, PERMUTATION, TABLE2
from experiments.huang2010.documents import BINARY, CONSTANT, FIG3
from experiments.huang2010.linesearch import FIG4
from experiments.huang2010.tagging import FIG2, TABLE3

ITEMS = (TABLE3, FIG2, TABLE2, IIS, PERMUTATION, FIG3, BINARY, CONSTANT, FIG4)
