"""Training on examples that live elsewhere: in parts of a process, or on the workers of a Dask cluster.

vectors.py   changes of weights as they are sent: sparse where that is smaller
place.py     Place: a part of the examples, and what is asked of it
visiting.py  VisitedPlace: its dual variables, and a round of CoCoA+ on them
places.py    Here: places in this process; what was sent, and how long they took
cluster.py   Cluster: places on the workers of Dask
spread.py    Spread: the problem whose sums are over places; solvers do not know
rounds.py    Rounds: any solver of the dual, at all places at once (CoCoA+)

How a worker makes its part of an estimator's problem out of shards: `estimators/elsewhere.py`.
"""
