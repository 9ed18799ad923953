"""One kernel by name, several by the type of the named tuple of arrays that it is given."""

import functools
import inspect

from numba.extending import overload

from fenchel._math import REORDER


def kernel_by_type(declaration):
    """Declare a kernel that is implemented for each kind of named tuple, the type of its first argument.

    The result can be called from Python (it looks the type up) and from jitted code (Numba does).
    """
    implementations = {}

    def call(first, *args):
        return implementations[type(first)](first, *args)

    def choose(first, *args):
        return implementations.get(getattr(first, "instance_class", None))

    functools.update_wrapper(call, declaration)
    choose.__signature__ = inspect.signature(declaration)
    options = {"nogil": True, "fastmath": REORDER, "forceinline": True, "error_model": "numpy"}
    overload(call, strict=False, jit_options=options)(choose)

    def implement(*kinds):
        """Decorate the kernel for these named tuples."""

        def register(kernel):
            implementations.update(dict.fromkeys(kinds, kernel))
            return kernel

        return register

    call.implement = implement
    return call
