"""A slice of the campaign with fixed seeds, and the campaign's own objective against the library's."""

from dataclasses import fields

import numpy as np
import pytest

from campaign.choices import OPTIONS
from campaign.draws import KINDS, draw
from campaign.runs import report_of
from fenchel.solvers import SOLVERS, solver_class

SEEDS, SLICES = 300, 10
FOUND = [4032, 13980, 16588, 19172, 56216]  # where longer runs found a violation, since repaired


@pytest.mark.parametrize("part", range(SLICES))
def test_no_certificate_is_false(part):
    reports = [report_of(seed) for seed in [*range(SEEDS), *FOUND][part::SLICES]]
    wrong = [(report.seed, *violation) for report in reports for violation in report.violations]
    assert not wrong, "\n".join(f"python -m tests.campaign --only {seed}: {what}" for seed, *what in wrong)


def test_the_options_of_every_solver_are_drawn():
    for name in SOLVERS:
        kind = solver_class(name)
        assert {f.name for f in fields(kind)} - {"seed"} == OPTIONS[kind.__name__].keys()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_the_minimum_of_the_list_is_stationary(kind, loss):
    """Newton's method on the list finds what no small step improves."""
    rng = np.random.default_rng(7)
    listed = draw(rng, [kind], loss, tame=True).listed
    best = listed.polish(listed.join(np.zeros(listed.d), 0.0))
    value = listed.value(best)
    for step in 10.0 ** np.arange(-8.0, 1.0):
        other = best + step * rng.standard_normal(best.size)
        assert listed.value(other) >= value * (1.0 - 1e-9)
