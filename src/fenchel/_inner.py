"""Kernels that only kernels call: kept as LLVM's intermediate code, and made machine code with their callers.

Numba makes machine code of each function, links it into its caller, and does so again there: for a kernel at
the bottom of five calls five times, four times for nobody. Here it is done once, for the kernel that Python
calls. Nothing of Numba's is changed for others.

Optimised each kernel still is by itself: leaving that to its callers took a fifth less to compile, and made
chains with L-BFGS 25 % faster, but two classes with L-BFGS 25 % slower.
"""

import llvmlite.binding as llvm
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult

KIND = "fenchel: inner"  # how its files in the cache are told from Numba's own


class InnerLibrary(JITCodeLibrary):
    """The code of one kernel, to be linked into others: never executable."""

    @classmethod
    def loaded(cls, codegen, name: str, bitcode: bytes):
        """What `serialize_using_object_code` wrote."""
        library = cls(codegen, name)
        library._final_module = llvm.parse_bitcode(bitcode)
        library._finalize_final_module()
        return library

    def serialize_using_object_code(self):
        self._ensure_finalized()
        return self.name, KIND, self._get_module_for_linking().as_bitcode()

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0  # as where a function has no wrapper for Python

    @property
    def codegen(self):
        return self  # Numba asks it for no more than this:

    def set_env(self, name, environment):
        """An environment holds Python objects, for code that talks to Python: no kernel does."""


class InnerCompiler(Compiler):
    """Numba's compiler, with an `InnerLibrary` for what it makes."""

    def __init__(self, typing, target, library, *others):
        super().__init__(typing, target, InnerLibrary(target.codegen(), "inner"), *others)


class KernelCacheImpl(CompileResultCacheImpl):
    """Numba's way from a file of the cache to a kernel, for inner ones too."""

    def rebuild(self, target_context, payload):
        (name, kind, code), fndesc, environment, signature, objectmode, lifted, *_ = payload
        if kind != KIND:
            return super().rebuild(target_context, payload)
        library = InnerLibrary.loaded(target_context.codegen(), name, code)
        return CompileResult(
            **dict.fromkeys(CompileResult._fields)
            | {
                "target_context": target_context,
                "typing_context": target_context.typing_context,
                "library": library,
                "environment": environment,
                "entry_point": target_context.get_executable(library, fndesc, environment),
                "fndesc": fndesc,
                "signature": signature,
                "objectmode": objectmode,
                "lifted": lifted,
                "reload_init": (),
            }
        )
