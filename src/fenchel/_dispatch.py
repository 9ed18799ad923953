"""One kernel by name, several by the type of a named tuple of arrays that it is given."""

import functools
import inspect

from numba.extending import overload

from fenchel._math import REORDER


def kernel_by_type(declaration, field: str | None = None):
    """Declare a kernel that is implemented for each kind of named tuple, the type of its first argument.

    field: if given, the first argument is a tuple of tuples, and the type of this one decides. The body of
    the declaration, where it has one, is for all other kinds. The result can be called from Python (it looks
    the type up) and from jitted code (Numba does).
    """
    implementations, default = {}, declaration if _has_body(declaration) else None

    def call(first, *args):
        kind = type(getattr(first, field) if field else first)
        return implementations.get(kind, default)(first, *args)

    def choose(first, *args):
        return implementations.get(_class_of(first, field), default)

    functools.update_wrapper(call, declaration)
    choose.__signature__ = inspect.signature(declaration)
    options = {"nogil": True, "fastmath": REORDER, "forceinline": True, "error_model": "numpy"}
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # jitted code alone calls it
    overload(call, strict=False, jit_options=options)(choose)

    def implement(*kinds):
        """Decorate the kernel for these named tuples."""

        def register(kernel):
            implementations.update(dict.fromkeys(kinds, kernel))
            return kernel

        return register

    call.implement = implement
    return call


def _class_of(first, field):
    """The named tuple that a Numba type, or a field of it, stands for; None where it is none."""
    if field is not None:
        first = first.types[first.fields.index(field)] if field in getattr(first, "fields", ()) else None
    return getattr(first, "instance_class", None)


def _has_body(declaration) -> bool:
    """Whether there is more than a docstring."""
    return declaration.__code__.co_code != (lambda: None).__code__.co_code
