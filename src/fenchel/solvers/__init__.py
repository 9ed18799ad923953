"""All solvers by name. Listing them imports no kernel; a new one is one file and one line here."""

from difflib import get_close_matches
from importlib import import_module

# name: (module:class, options that make this name of it)
SOLVERS = {
    "gis": ("gis:GIS", {}),
    "iis": ("iis:IIS", {}),
    "scgis": ("scgis:SCGIS", {}),
    "cd-primal": ("cdprimal:CDPrimal", {}),
    "sm-s": ("sm:SM", {"variant": "s"}),
    "sm-g1": ("sm:SM", {"variant": "g1"}),
    "sm-g2": ("sm:SM", {"variant": "g2"}),
    "sm-q": ("sm:SM", {"variant": "q"}),
    "newton": ("newton:Newton", {}),
    "lbfgs": ("lbfgs:LBFGS", {}),
    "tron": ("tron:TRON", {}),
    "prox-newton": ("proxnewton:ProxNewton", {}),
    "sgd": ("sgd:SGD", {}),
    "sag": ("sag:SAG", {"sampling": "uniform"}),
    "sag-nus": ("sag:SAG", {"sampling": "lipschitz"}),
    "cd-dual": ("cddual:CDDual", {}),
    "eg": ("eg:EG", {}),
    "eg-gap": ("eg:EG", {"order": "gap"}),
    "eg-batch": ("eg:EG", {"batch": True}),
    "sdca": ("sdca:SDCA", {}),
    "interior-point": ("interiorpoint:InteriorPoint", {}),
    "cutting-plane": ("cuttingplane:CuttingPlane", {}),
    "cd-outputs": ("cdoutputs:CDOutputs", {}),
    "perceptron": ("perceptron:Perceptron", {}),
}

# scikit-learn's, which end at the optimum that "auto" takes the fastest way to.
ELSEWHERE = ("liblinear", "newton-cg", "newton-cholesky", "saga")

CLASSES = {target.split(":")[1]: target for target, _ in SOLVERS.values()}


def solver_class(name: str) -> type:
    """The class behind a name of SOLVERS."""
    if name not in SOLVERS:
        raise ValueError(f"unknown solver {name!r}; {_suggestion(name)}there are {', '.join(SOLVERS)}")
    return _load(SOLVERS[name][0])


def make(name: str, **options):
    """The solver of that name with its settings: make("cd-dual", subproblem="bisection")."""
    return solver_class(name)(**SOLVERS[name][1] | options)


def _suggestion(name):
    if name in ELSEWHERE:
        return "leave it out: 'auto' takes the fastest of these to the same optimum; "
    near = get_close_matches(str(name), [*SOLVERS, "auto"], n=1, cutoff=0.4)
    return f"did you mean {near[0]!r}? " if near else ""


def _load(target):
    module, _, attribute = target.partition(":")
    return getattr(import_module(f"fenchel.solvers.{module}"), attribute)


def __getattr__(name):
    if name in CLASSES:
        return _load(CLASSES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), *CLASSES]
