"""Random small problems, each certificate checked against an objective written out in plain NumPy.

python -m tests.campaign --problems 10000 --seed 0      problem k has the seed 0 + k
python -m tests.campaign --only 4711                    one problem again, with all its numbers
python -m tests.campaign --convergence                  how often each solver stops short of 1e-3

objective    every output listed, in extended precision: P, and its minimum by Newton's method
draws        a problem from a seed        choices      solver, options, start and interrupt of a run
runs         the problem of a seed solved, by several solvers or by refits of an estimator
checks       what a result must show      tables       counts and violations, as printed
"""
