"""lepriol2018: SDCA with adaptive sampling for conditional random fields, Table 1 and Figures 2 to 9."""

from experiments.lepriol2018.chains import TABLE1
from experiments.lepriol2018.linesearch import BEGIN, FIG8, SHARE
from experiments.lepriol2018.methods import FIG4, FIG6, FIG7
from experiments.lepriol2018.sampling import FIG2, FIG3, FIG9

ITEMS = (TABLE1, FIG2, FIG3, FIG4, FIG6, FIG7, FIG8, SHARE, BEGIN, FIG9)
