# What `fenchel` exports, for editors and type checkers: at run time names are imported on first use.
from fenchel import problems as problems
from fenchel import solvers as solvers
from fenchel.estimators.chain import ChainCRF as ChainCRF
from fenchel.estimators.checkpoint import Checkpoint as Checkpoint
from fenchel.estimators.crossvalidated import LogisticRegressionCV as LogisticRegressionCV
from fenchel.estimators.flat import LinearSVC as LinearSVC
from fenchel.estimators.flat import LogisticRegression as LogisticRegression
from fenchel.estimators.graph import GraphCRF as GraphCRF
from fenchel.estimators.maxent import MaxEnt as MaxEnt
from fenchel.estimators.parser import DependencyParser as DependencyParser
from fenchel.estimators.tagger import MaxEntTagger as MaxEntTagger
from fenchel.features.graphs import Graph as Graph
from fenchel.io.shards import Shards as Shards
from fenchel.loop import solve as solve
from fenchel.paths import path as path
from fenchel.saved import load as load
from fenchel.solvers.base import Start as Start

__all__ = [
    "ChainCRF",
    "Checkpoint",
    "DependencyParser",
    "Graph",
    "GraphCRF",
    "LinearSVC",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MaxEnt",
    "MaxEntTagger",
    "Shards",
    "Start",
    "load",
    "path",
    "problems",
    "solve",
    "solvers",
]

__version__: str
