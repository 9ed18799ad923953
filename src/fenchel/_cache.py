"""Where compiled kernels are kept: Numba's places, where they can be written and trusted; else nowhere.

Numba takes the first that can be written of NUMBA_CACHE_DIR, the __pycache__ beside the source and the user's
cache folder. It dies where there is none, where the disk fills up, and where a file was cut short. Kernels of
this package are then loaded from where they were compiled before the folder was closed, or compiled for this
process only.

Every module with kernels takes its `njit` from here. Nothing of Numba's is changed for others.
"""

import os
import stat
import warnings
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from pathlib import Path

import llvmlite.binding
import numba
from numba.core import sigutils, types, typing
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    NullCache,
    UserProvidedCacheLocator,
)
from numba.core.ccallback import CFunc
from numba.extending import models, register_model

from fenchel import __version__

PACKAGE = Path(__file__).resolve().parent
NOWHERE = "no folder for it can be written"
_told = []


class _Places(CompileResultCacheImpl):
    """Numba's, for kernels that may call others by their address."""

    def rebuild(self, target_context, payload):
        code = payload[0][2][0]  # machine code, in which symbols have their names
        for each in _externals:
            if each.symbol.encode() in code:
                each.address  # noqa: B018 (makes it known)
        return super().rebuild(target_context, payload)


class KernelCache(FunctionCache):
    """Numba's cache of one kernel; a file that cannot be read or written costs a compilation, not the fit."""

    _impl_class = _Places

    def __init__(self, kernel):
        super().__init__(kernel)
        # Numba sees an edit of the kernel's own file only; its helpers come in other files of a new version.
        self._cache_file._source_stamp = self._cache_file._source_stamp, __version__

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # of what was cut short by a full disk or a crash, pickle can make anything
            self._forget()
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self._forget()
            tell_once(f"{self.cache_path}: {error.strerror or error}")

    def _forget(self):
        """Remove the index: it may be damaged, or name a file that holds the kernel of an older source."""
        with suppress(OSError):
            os.unlink(self._cache_file._index_path)


class _Existing:
    """A place that need not be written: code that was compiled there beforehand is loaded."""

    def ensure_cache_path(self):
        if not os.path.isdir(self.get_cache_path()):
            raise FileNotFoundError(self.get_cache_path())


class _ExistingGiven(_Existing, UserProvidedCacheLocator):
    pass


class _ExistingInTree(_Existing, InTreeCacheLocator):
    pass


class _ReadOnlyPlaces(_Places):
    _locator_classes = (_ExistingGiven, _ExistingInTree)


class ReadOnlyCache(KernelCache):
    """The cache of one kernel in an image or an install that was used before it was closed."""

    _impl_class = _ReadOnlyPlaces

    def save_overload(self, sig, data):
        tell_once(NOWHERE)


def njit(function=None, *, cache=False, **options):
    """`numba.njit` for kernels of this package: kept, with cache=True, where `cache_for` finds a place.

    Division by zero gives inf or nan, as in NumPy: where numbers overflow a run ends with an objective that
    is not finite, and not with an exception. What Python calls returns no named tuple, and several arrays
    only where Ctrl-C is `held`: see there.
    """
    if function is None:
        return partial(njit, cache=cache, **options)
    kernel = numba.njit(**{"error_model": "numpy", "no_cfunc_wrapper": True} | options)(function)
    if cache:
        kernel._cache = cache_for(function)  # what numba.njit(cache=True) does, with its own cache
    return kernel


def helper(function=None, **options):
    """`njit` for kernels that only other kernels call.

    No way in from Python is compiled: for named tuples of arrays that takes longer than the kernel itself.
    """
    return njit(function, no_cpython_wrapper=True, **options)


_externals = []


class External(types.ExternalFunction):
    """A kernel of plain pointers that is compiled once and called by its address: see `external`."""

    def __init__(self, function, signature):
        arguments, result = sigutils.normalize_signature(signature)
        self.kernel = CFunc(function, (arguments, result), locals={}, options={"error_model": "numpy"})
        self.kernel._cache = cache_for(function)
        super().__init__(f"{function.__module__}.{function.__name__}", typing.signature(result, *arguments))
        _externals.append(self)

    @cached_property
    def address(self) -> int:
        """Where it is; from then on what calls it can be compiled or loaded, and not before."""
        self.kernel.compile()
        llvmlite.binding.add_symbol(self.symbol, self.kernel.address)
        return self.kernel.address

    def get_call_type(self, context, args, kws):
        self.address  # noqa: B018 (makes it known)
        return super().get_call_type(context, args, kws)


register_model(External)(models.OpaqueModel)


def external(signature):
    """Decorate a kernel for many callers: what Numba compiles into each of them anew takes seconds each time.

    Jitted code calls it with `array.ctypes`. It is compiled with the first of its callers.
    """
    return lambda function: External(function, signature)


def cache_for(function):
    """The cache of a kernel."""
    kept = _first_place(function)
    trouble = why_not_trusted(kept.cache_path) if kept else NOWHERE
    if not trouble:
        return kept
    tell_once(trouble)
    return NullCache()


def _first_place(kernel):
    """Its cache in the first folder that can be written, or else exists; None where there is none."""
    for kind in (KernelCache, ReadOnlyCache):
        try:
            return kind(kernel)
        except RuntimeError as error:
            if "no locator" not in str(error):
                raise
    return None


@lru_cache
def why_not_trusted(folder: str) -> str:
    """Why machine code in this folder may be somebody else's; empty where it is not.

    Somebody else is who is neither the user, nor root, nor the owner of this package. Folders above may be
    theirs, but not open to everybody, unless sticky as /tmp is. Groups are the administrator's choice. The
    package's own folder is as trusted as its source. Where the system knows no owners nothing can be said.
    """
    path = Path(folder).resolve()
    if PACKAGE in path.parents or not hasattr(os, "getuid"):
        return ""
    friends = {0, os.getuid(), PACKAGE.stat().st_uid}
    for place in (path, *path.parents):
        try:
            found = place.stat()
        except OSError as error:
            return f"{place}: {error.strerror}"
        if place in (path, path.parent) and found.st_uid not in friends:
            return f"{place} belongs to another user"
        if found.st_mode & stat.S_IWOTH and (place == path or not found.st_mode & stat.S_ISVTX):
            return f"{place} can be written by everybody"
    return ""


def tell_once(reason: str) -> None:
    """Warn that every process will compile anew, and how to end that; of its kernels only for the first."""
    if _told:
        return
    _told.append(reason)
    warnings.warn(
        f"fenchel cannot keep its compiled code ({reason}), so each new process compiles again, which takes "
        f"seconds to a minute; set NUMBA_CACHE_DIR to a folder that you alone can write",
        RuntimeWarning,
        stacklevel=1,
    )
