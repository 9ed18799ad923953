"""Asking for memory ahead of its use: in a random order each row would begin with a wait for it."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fenchel._cache import helper
from fenchel._dispatch import kernel_by_type
from fenchel._packed import item_pointer
from fenchel._sparse import Rows, Table, row_begin, row_end


@intrinsic
def prefetch(typing_context, array, index):
    """Ask the processor for the cache line where array[index] begins; changes nothing else."""

    def emit(context, builder, signature, args):
        pointer = item_pointer(context, builder, array, args[0], args[1])
        number = ir.IntType(32)
        address = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        declared = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, declared, "llvm.prefetch.p0")
        builder.call(function, [address, number(0), number(3), number(1)])  # for reading, to keep, data
        return context.get_dummy_value()

    return types.void(array, index), emit


@helper(cache=True, nogil=True, forceinline=True)
def prefetch_row(rows, i):
    """Bring row i into the cache ahead of its use.

    In random order each row starts with a wait for memory: a pass of dot and add over 25,000 × 138 entries
    took 21 ms without this, 14 ms with it, 11 ms in sequential order.
    """
    for e in range(row_begin(rows, i), row_end(rows, i), 8):
        prefetch(rows.data, e)
    prefetch_columns(rows, i)


@kernel_by_type
def prefetch_columns(rows, i):
    """The same for the numbers of the columns."""


@prefetch_columns.implement(Rows)
def _prefetch_columns(rows, i):
    for e in range(rows.indptr[i], rows.indptr[i + 1], 16):
        prefetch(rows.indices, e)


@prefetch_columns.implement(Table)
def _prefetch_nothing(rows, i):
    pass
