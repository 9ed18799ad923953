"""Everybody's regularisation constant becomes λ here, in one place.

Every tool weighs the sum or the mean of the losses against ‖w‖² in its own way. With the objective divided
by the total weight N of the examples (their number n, without sample weights) all read mean loss + λ/2 ‖w‖²,
and + λ₁ ‖w‖₁ where weights are to be exactly zero.
"""

from math import inf, isinf, isnan

# name: (objective as that tool writes it, λ from its constant and N)
CONSTANTS = {
    "C": ("C Σ loss + ½‖w‖²  (scikit-learn, LIBLINEAR, yu2011)", lambda c, n: 1.0 / (c * n)),
    "sigma2": ("mean loss + ‖w‖²/(2σ²)  (huang2010, yu2011 maximum entropy)", lambda c, n: 1.0 / c),
    "collins_C": ("Σ loss + C/2 ‖w‖²  (collins2008)", lambda c, n: c / n),
    "lam": ("mean loss + λ/2 ‖w‖²  (lepriol2018)", lambda c, n: c),
    "alpha": ("mean loss + α/2 ‖w‖²  (SGDClassifier)", lambda c, n: c),
    "c2": ("Σ loss + c2 ‖w‖²  (CRFsuite)", lambda c, n: 2.0 * c / n),
    "crfpp_C": ("Σ loss + ‖w‖²/(2C)  (CRF++)", lambda c, n: 1.0 / (c * n)),
    "rho2": ("Σ loss + ρ₂/2 ‖w‖²  (Wapiti)", lambda c, n: c / n),
}

# name: (objective as that tool writes it, the constants it goes with, the first of them if none is given,
#        (λ, λ₁) from its constant, the λ of the other and N)
SPARSE = {
    "c1": ("Σ loss + c1 ‖w‖₁ + c2 ‖w‖²  (CRFsuite)", ("c2",), 0.0, lambda c, lam, n: (lam, c / n)),
    "rho1": ("Σ loss + ρ₁ ‖w‖₁ + ρ₂/2 ‖w‖²  (Wapiti)", ("rho2",), 0.0, lambda c, lam, n: (lam, c / n)),
    "l1": ("mean loss + λ₁ ‖w‖₁ + λ/2 ‖w‖²", ("lam",), 0.0, lambda c, lam, n: (lam, c)),
    "l1_ratio": (
        "C Σ loss + r ‖w‖₁ + (1 − r)/2 ‖w‖²  (scikit-learn; SGDClassifier with α)",
        ("C", "alpha"),
        1.0,
        lambda r, lam, n: ((1.0 - r) * lam, r * lam),
    ),
}

# Constants that divide the penalty: they must be positive, and infinity means no regulariser.
WEAKENING = frozenset({"C", "sigma2", "crfpp_C"})


def penalty(total: float, **constant: float) -> float:
    """λ from exactly one named constant, for examples of total weight `total`.

    >>> penalty(100, C=2.0)
    0.005
    """
    if len(constant) != 1:
        raise ValueError(f"exactly one constant is needed, got {sorted(constant) or 'none'}")
    ((name, value),) = constant.items()
    if name not in CONSTANTS:
        raise ValueError(f"unknown constant {name!r}; there are {', '.join(CONSTANTS)}")
    value = _as_number(name, value)
    if name in WEAKENING:
        if not value > 0.0:
            raise ValueError(f"{name}={value:g} must be positive ({name}=inf means no regulariser)")
        if isinf(value):
            return 0.0
        lam = CONSTANTS[name][1](value, total) if value * total > 0.0 else inf
        if not 0.0 < lam < inf:
            raise ValueError(f"{name}={value:g} for a total weight of {total:g} leaves no usable λ ({lam:g})")
        return lam
    if not 0.0 <= value < float("inf"):
        raise ValueError(f"{name}={value:g} must be a finite number, at least 0 (0 means no regulariser)")
    return CONSTANTS[name][1](value, total)


def penalties(total: float, **constants: float) -> tuple[float, float]:
    """(λ, λ₁) from one constant of CONSTANTS, one of SPARSE, or one of each that belong together.

    >>> penalties(100, c1=1.0, c2=0.5)
    (0.01, 0.01)
    """
    sparse = [name for name in constants if name in SPARSE]
    if not sparse:
        return penalty(total, **constants), 0.0
    if len(sparse) > 1:
        raise ValueError(f"at most one constant of ‖w‖₁ can be given, got {sorted(sparse)}")
    name = sparse[0]
    _, partners, default, rule = SPARSE[name]
    value = _as_number(name, constants.pop(name))
    most = 1.0 if name == "l1_ratio" else inf
    if not (0.0 <= value <= most and value < inf):
        limit = "between 0 and 1" if most == 1.0 else "a finite number, at least 0"
        raise ValueError(f"{name}={value:g} must be {limit}")
    strangers = sorted(constants.keys() - set(partners))
    if strangers:
        raise ValueError(f"{name} goes with {' or '.join(partners)}, not with {strangers[0]}")
    return rule(value, penalty(total, **(constants or {partners[0]: default})), total)


def _as_number(name, value):
    try:
        if isinstance(value, str | bytes):  # float() would read them
            raise TypeError
        value = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r} is not a number") from None
    if isnan(value):
        raise ValueError(f"{name} is NaN")
    return value
