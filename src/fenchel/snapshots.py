"""The state of a run as plain arrays and values, and back: what a checkpoint holds.

`freeze` walks an object (a solver's state, what the loop remembers) and takes it apart into arrays and what
JSON can hold. `thaw` puts such values into an object of the same make: a state that `init` has just made of
the same problem. Arrays are written in place where they fit, so that what shares one goes on sharing it, and
one that two places hold is stored once. Of classes only this package's are made, without calling anything of
theirs.
"""

from importlib import import_module

import numpy as np


def freeze(tree, problem) -> tuple[dict[str, np.ndarray], object]:
    """The arrays by name, and the rest as JSON can hold it. The problem, and what it keeps, is not stored."""
    walk = _Freezing(problem)
    return walk.arrays, walk.encode(tree)


def thaw(encoded, arrays: dict, template, problem):
    """What `freeze` took apart, in the place of the template where that can be written."""
    return _Thawing(arrays, problem).decode(encoded, template)


def _own_names(problem) -> dict[int, str]:
    """What a problem holds, by identity: settings and what it computed once."""
    held = vars(problem).items() if problem is not None else ()
    return {id(value): name for name, value in held if hasattr(value, "__dict__") or isinstance(value, tuple)}


class _Freezing:
    def __init__(self, problem):
        self.problem, self.own, self.arrays, self.known = problem, _own_names(problem), {}, {}

    def encode(self, value):
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, np.ndarray | np.generic):
            return {"array": self._name(value), "scalar": isinstance(value, np.generic)}
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, np.random.Generator):
            return {"generator": value.bit_generator.state}
        if isinstance(value, dict):
            return {"dict": {name: self.encode(item) for name, item in value.items()}}
        if isinstance(value, list) or type(value) is tuple:
            return {type(value).__name__: [self.encode(item) for item in value]}
        return self._encode_object(value)

    def _name(self, array):
        name, _ = self.known.setdefault(id(array), (f"a{len(self.known)}", array))  # held: ids are not reused
        self.arrays[name] = np.atleast_1d(array)
        return name

    def _encode_object(self, value):
        if value is self.problem or id(value) in self.own:
            return {"own": "" if value is self.problem else self.own[id(value)]}
        kind = type(value)
        if not kind.__module__.startswith("fenchel."):
            raise TypeError(f"a {kind.__module__}.{kind.__name__} cannot be kept in a checkpoint")
        fields = value._asdict() if isinstance(value, tuple) else vars(value)
        encoded = {name: self.encode(item) for name, item in fields.items()}
        return {"class": f"{kind.__module__}:{kind.__qualname__}", "fields": encoded}


class _Thawing:
    def __init__(self, arrays, problem):
        self.arrays, self.problem, self.placed = arrays, problem, {}

    def decode(self, encoded, template=None):
        if not isinstance(encoded, dict):
            return encoded
        return getattr(self, f"_decode_{next(iter(encoded), '')}")(encoded, template)

    def _decode_array(self, encoded, template):
        value = self.arrays[encoded["array"]]
        if encoded["scalar"]:
            return value[0]
        fits = isinstance(template, np.ndarray) and template.dtype == value.dtype
        if fits and template.shape == () and value.shape == (1,):
            value = value[0]
        if encoded["array"] not in self.placed:
            fits = fits and template.shape == value.shape
            self.placed[encoded["array"]] = _written(template, value) if fits else value
        return self.placed[encoded["array"]]

    def _decode_float(self, encoded, _template):
        return float.fromhex(encoded["float"])

    def _decode_generator(self, encoded, _template):
        generator = np.random.default_rng(0)
        generator.bit_generator.state = encoded["generator"]
        return generator

    def _decode_dict(self, encoded, template):
        known = template if isinstance(template, dict) else {}
        return {name: self.decode(item, known.get(name)) for name, item in encoded["dict"].items()}

    def _decode_list(self, encoded, template):
        known = template if isinstance(template, list) and len(template) == len(encoded["list"]) else None
        return [self.decode(item, known and known[k]) for k, item in enumerate(encoded["list"])]

    def _decode_tuple(self, encoded, template):
        known = template if isinstance(template, tuple) and len(template) == len(encoded["tuple"]) else None
        return tuple(self.decode(item, known and known[k]) for k, item in enumerate(encoded["tuple"]))

    def _decode_own(self, encoded, _template):
        return getattr(self.problem, encoded["own"]) if encoded["own"] else self.problem

    def _decode_class(self, encoded, template):
        kind = _class(encoded["class"])
        known = template if type(template) is kind else None
        if issubclass(kind, tuple):
            values = (
                self.decode(item, getattr(known, name, None)) for name, item in encoded["fields"].items()
            )
            return kind._make(values)
        target = object.__new__(kind) if known is None else known
        held = {} if known is None else vars(known)
        fields = {name: self.decode(item, held.get(name)) for name, item in encoded["fields"].items()}
        target.__dict__.update(fields)  # past properties and frozen dataclasses
        return target


def _written(template, value):
    """The template with the numbers of value; value itself where it may not be written."""
    if not template.flags.writeable:
        return value
    template[...] = value
    return template


def _class(name):
    """A class of this package."""
    module, _, qualified = name.partition(":")
    if not module.startswith("fenchel."):
        raise ValueError(f"{module} is none of fenchel's modules")
    kind = import_module(module)
    for part in qualified.split("."):
        kind = vars(kind)[part]
    if not isinstance(kind, type):
        raise ValueError(f"{name} is no class")
    return kind
