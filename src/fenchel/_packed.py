"""Named tuples of arrays as one pointer: what large kernels hand on to each other.

An array is seven numbers to Numba, and a counted reference; a named tuple of twenty arrays is 140 arguments
of every call, taken apart and put together in each kernel. That was a third of what the first fit of a chain
took to compile. A kernel that gets a `packed` one gets an address, of a block that says where arrays lie:

    d.name             as of the named tuple; an array is a `Bare`: where it begins, and d.name.size
    d.name[j]          reads and writes; no j is negative
    tail(d.name, at)   d.name[at:]

Fields are flat arrays without gaps, numbers, and named tuples of these.
"""

import operator
from sys import byteorder

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils, typing
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_untracked, lower_builtin
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.numpy_support import from_dtype

BYTE, WORD = ir.IntType(8), ir.IntType(64)


class Bare(types.Type):
    """Where numbers of a kind begin, and how many there are."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Bare({dtype})")


class PackedType(types.Type):
    """A block of memory that says where the fields of a named tuple lie."""

    def __init__(self, instance_class, fields, kinds):
        self.instance_class, self.fields, self.types = instance_class, fields, kinds  # as Numba's NamedTuple
        super().__init__(name=f"Packed({instance_class.__qualname__}, {kinds})")

    def place(self, name):
        """The type of a field, and the word where it begins."""
        before = self.fields.index(name)
        return self.types[before], sum(2 if isinstance(kind, Bare) else 1 for kind in self.types[:before])


class _Block:
    """The words of one named tuple; it holds those of the ones within."""

    def __init__(self, values):
        self.within = []
        self.words = np.array([word for value in values for word in self._words(value)], np.uint64)
        self.address = self.words.ctypes.data

    def _words(self, value):
        if isinstance(value, np.ndarray):
            return value.ctypes.data, value.size
        if isinstance(value, tuple):
            self.within.append(_Block(value))
            return (self.within[-1].address,)
        number = value if isinstance(value, np.generic) else np.array(value)
        return (int.from_bytes(number.tobytes(), byteorder),)


def packed(cls):
    """Decorate a named tuple: kernels that Python gives one get its address."""
    cls.block = property(_Block)
    typeof_impl.register(cls)(type_of)
    return cls


def type_of(value, context=None):
    """Of a named tuple, or of a field of one."""
    if isinstance(value, tuple):
        return PackedType(type(value), value._fields, tuple(map(type_of, value)))
    if not isinstance(value, np.ndarray):
        return typeof(value)
    if value.ndim != 1 or not value.flags.c_contiguous:
        raise TypeError(f"an array of shape {value.shape} in a packed tuple; flat ones without gaps can be")
    return Bare(from_dtype(value.dtype))


@register_model(PackedType)
class _PackedModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, BYTE.as_pointer())


@register_model(Bare)
class _BareModel(models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("data", types.CPointer(kind.dtype)), ("size", types.intp)])


@unbox(PackedType)
def _unbox(kind, value, c):
    """Making the block may fail: Ctrl-C may strike there as anywhere in Python."""
    block = c.pyapi.object_getattr_string(value, "block")
    pointer = cgutils.alloca_once_value(c.builder, ir.Constant(BYTE.as_pointer(), None))
    with c.builder.if_then(cgutils.is_not_null(c.builder, block)):
        address = c.pyapi.object_getattr_string(block, "address")
        c.builder.store(c.pyapi.long_as_voidptr(address), pointer)
        c.pyapi.decref(address)
    failed = c.pyapi.c_api_error()
    return NativeValue(c.builder.load(pointer), is_error=failed, cleanup=lambda: c.pyapi.decref(block))


@infer_getattr
class _PackedFields(typing.templates.AttributeTemplate):
    key = PackedType

    def generic_resolve(self, kind, name):
        return kind.place(name)[0] if name in kind.fields else None


@lower_getattr_generic(PackedType)
def _field(context, builder, kind, pointer, name):
    """Blocks are never written: LLVM may keep what it has read of them."""
    field, place = kind.place(name)

    def word(k, as_type):
        at = builder.gep(pointer, [WORD(8 * (place + k))])
        loaded = builder.load(builder.bitcast(at, as_type.as_pointer()))
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if isinstance(field, Bare):
        bare = cgutils.create_struct_proxy(field)(context, builder)
        bare.data = word(0, context.get_data_type(field.dtype).as_pointer())
        bare.size = word(1, WORD)
        return bare._getvalue()
    return context.data_model_manager[field].from_data(builder, word(0, context.get_data_type(field)))


@infer_getattr
class _BareFields(typing.templates.AttributeTemplate):
    key = Bare

    def resolve_size(self, kind):
        return types.intp

    def resolve_data(self, kind):
        return types.CPointer(kind.dtype)


@lower_getattr_generic(Bare)
def _part(context, builder, kind, value, name):
    return getattr(cgutils.create_struct_proxy(kind)(context, builder, value=value), name)


def item_pointer(context, builder, kind, value, index):
    """The address of an entry of a `Bare`, or of a row of Numba's arrays; no index is negative."""
    if isinstance(kind, Bare):
        return builder.gep(cgutils.create_struct_proxy(kind)(context, builder, value=value).data, [index])
    view, where = context.make_array(kind)(context, builder, value), [index] + [WORD(0)] * (kind.ndim - 1)
    return cgutils.get_item_pointer(context, builder, kind, view, where, wraparound=False)


@typing.templates.infer_global(operator.getitem)
class _GetItem(typing.templates.AbstractTemplate):
    def generic(self, args, kws):
        if isinstance(args[0], Bare) and isinstance(args[1], types.Integer):
            return typing.signature(args[0].dtype, *args)


@typing.templates.infer_global(operator.setitem)
class _SetItem(typing.templates.AbstractTemplate):
    def generic(self, args, kws):
        if isinstance(args[0], Bare) and isinstance(args[1], types.Integer):
            return typing.signature(types.none, args[0], args[1], args[0].dtype)


@lower_builtin(operator.getitem, Bare, types.Integer)
def _get(context, builder, signature, args):
    kind, index = signature.args
    index = context.cast(builder, args[1], index, types.int64)
    at = item_pointer(context, builder, kind, args[0], index)
    value = context.data_model_manager[kind.dtype].from_data(builder, builder.load(at))
    return impl_ret_untracked(context, builder, signature.return_type, value)


@lower_builtin(operator.setitem, Bare, types.Integer, types.Any)
def _set(context, builder, signature, args):
    kind, index, _ = signature.args
    value = context.data_model_manager[kind.dtype].as_data(builder, args[2])
    index = context.cast(builder, args[1], index, types.int64)
    builder.store(value, item_pointer(context, builder, kind, args[0], index))
    return context.get_dummy_value()


@intrinsic
def bare(typing_context, data):
    """What begins at d.name.data, of unknown size."""

    def emit(context, builder, signature, args):
        made = cgutils.create_struct_proxy(signature.return_type)(context, builder)
        made.data, made.size = args[0], WORD(0)
        return made._getvalue()

    return Bare(data.dtype)(data), emit


@intrinsic
def tail(typing_context, x, at):
    """x[at:]."""

    def emit(context, builder, signature, args):
        bare = cgutils.create_struct_proxy(x)(context, builder, value=args[0])
        bare.data = builder.gep(bare.data, [args[1]])
        bare.size = builder.sub(bare.size, args[1])
        return bare._getvalue()

    return x(x, at), emit
