"""Several float64 side by side in one register: what LLVM's loop vectoriser does not find by itself.

A row of W holds K labels, K small. LLVM vectorises a loop over labels by 16 and leaves the rest (all of
K = 10, a fifth of K = 20) to scalar code, keeps sums over a row's entries in memory, or walks down the
columns instead; Numba has its straight-line vectoriser switched off. So the few kernels that decide the speed
say it outright.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

from fenchel._packed import item_pointer

DOUBLE, LONG = ir.DoubleType(), ir.IntType(64)
FLAGS = ("contract", "arcp", "nsz")  # fuse, never reorder: the reductions of exp_lanes must stay as written


class Lanes(types.Type):
    """`width` numbers in a register; LLVM splits widths beyond the machine's."""

    def __init__(self, width):
        self.width = width
        super().__init__(name=f"Lanes({width})")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, ir.VectorType(DOUBLE, fe_type.width))


def _spread(builder, number, width):
    """The same number in every lane."""
    kind = ir.VectorType(number.type, width)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), mask)


def _pointer(context, builder, array_type, array, index, width):
    """Address of array[index:index + width], for any alignment."""
    at = item_pointer(context, builder, array_type, array, index)
    return builder.bitcast(at, ir.VectorType(DOUBLE, width).as_pointer())


@intrinsic(prefer_literal=True)
def zeros(typing_context, width):
    """`width` zeros, a literal; the other functions take their width from their operands."""
    kind = Lanes(width.literal_value)

    def emit(context, builder, signature, args):
        return ir.Constant(ir.VectorType(DOUBLE, kind.width), [0.0] * kind.width)

    return kind(width), emit


@intrinsic
def spread(typing_context, number, like):
    """`number` in every lane, as many as `like` has."""

    def emit(context, builder, signature, args):
        return _spread(builder, args[0], like.width)

    return like(types.float64, like), emit


@intrinsic
def lanes_of(typing_context, like):
    """How many numbers `like` holds."""

    def emit(context, builder, signature, args):
        return ir.Constant(LONG, like.width)

    return types.uint64(like), emit


@intrinsic
def load(typing_context, array, index, like):
    """array[index:index + width] of a flat array, as many as `like` has."""

    def emit(context, builder, signature, args):
        return builder.load(_pointer(context, builder, array, args[0], args[1], like.width), align=8)

    return like(array, index, like), emit


@intrinsic
def store(typing_context, array, index, lanes):
    """array[index:index + width] = lanes."""

    def emit(context, builder, signature, args):
        builder.store(args[2], _pointer(context, builder, array, args[0], args[1], lanes.width), align=8)
        return context.get_dummy_value()

    return types.void(array, index, lanes), emit


def _fold(combine):
    """An intrinsic that brings the lanes down to one number, pair by pair."""

    @intrinsic
    def operate(typing_context, lanes):
        def emit(context, builder, signature, args):
            numbers = [builder.extract_element(args[0], ir.IntType(32)(k)) for k in range(lanes.width)]
            while len(numbers) > 1:
                half = len(numbers) // 2
                pairs = zip(numbers[:half], numbers[half:], strict=True)
                numbers = [combine(builder, a, b) for a, b in pairs]
            return numbers[0]

        return types.float64(lanes), emit

    return operate


total = _fold(lambda builder, a, b: builder.fadd(a, b))  # widths are powers of two here
largest = _fold(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
least = _fold(lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))


def _binary(instruction):
    """An intrinsic for one arithmetic instruction on two Lanes."""

    @intrinsic
    def operate(typing_context, a, b):
        def emit(context, builder, signature, args):
            return getattr(builder, instruction)(args[0], args[1], flags=FLAGS)

        return a(a, b), emit

    return operate


def _clip(sign):
    """An intrinsic for the larger (">") or the smaller ("<") of two Lanes; NaN gives the second."""

    @intrinsic
    def operate(typing_context, a, b):
        def emit(context, builder, signature, args):
            return builder.select(builder.fcmp_ordered(sign, args[0], args[1]), args[0], args[1])

        return a(a, b), emit

    return operate


larger, smaller = _clip(">"), _clip("<")


@intrinsic
def kept(typing_context, bits, index, lanes):
    """The lanes, eight of them, whose bit of bits[index], a byte, is set; 0 in the others."""

    def emit(context, builder, signature, args):
        at = item_pointer(context, builder, bits, args[0], args[1])
        mask = builder.bitcast(builder.load(at), ir.VectorType(ir.IntType(1), lanes.width))
        return builder.select(mask, args[2], ir.Constant(args[2].type, [0.0] * lanes.width))

    return lanes(bits, index, lanes), emit


@intrinsic
def chosen(typing_context, sign, a, b):
    """a where sign > 0, else b."""

    def emit(context, builder, signature, args):
        zero = ir.Constant(args[0].type, [0.0] * sign.width)
        return builder.select(builder.fcmp_ordered(">", args[0], zero), args[1], args[2])

    return a(sign, a, b), emit


_add, _sub, _mul, _div = _binary("fadd"), _binary("fsub"), _binary("fmul"), _binary("fdiv")


def _register(function, intrinsic_):
    @overload(function)
    def choose(a, b):
        if isinstance(a, Lanes) and isinstance(b, Lanes):
            return lambda a, b: intrinsic_(a, b)


_register(operator.add, _add)
_register(operator.sub, _sub)
_register(operator.mul, _mul)
_register(operator.truediv, _div)

MAGIC = 6755399441055744.0  # 1.5 · 2⁵²: added to a small number it leaves its nearest integer in the low bits
LOG2E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
COEFFICIENTS = [1.0 / float(np.prod(np.arange(1.0, k + 1.0))) for k in range(12, -1, -1)]


@intrinsic
def exp_lanes(typing_context, x):
    """eˣ, x clipped to −708 … 700: x = n log 2 + r, 2ⁿ by its bits, eʳ by 12 terms of Taylor (|r| ≤ 0.35).

    Within 4e-16 of the true value, 1.4 ns an element where libm takes 6–9.
    """

    def emit(context, builder, signature, args):
        width = x.width
        reals, integers = ir.VectorType(DOUBLE, width), ir.VectorType(LONG, width)
        fuse = {"flags": ("contract",)}

        def many(number):
            return ir.Constant(reals, [number] * width)

        value = args[0]
        value = builder.select(builder.fcmp_ordered(">", value, many(-708.0)), value, many(-708.0))
        value = builder.select(builder.fcmp_ordered("<", value, many(700.0)), value, many(700.0))
        shifted = builder.fadd(builder.fmul(value, many(LOG2E), **fuse), many(MAGIC), **fuse)
        n = builder.fsub(shifted, many(MAGIC))
        r = builder.fsub(value, builder.fmul(n, many(LN2_HIGH), **fuse), **fuse)
        r = builder.fsub(r, builder.fmul(n, many(LN2_LOW), **fuse), **fuse)
        series = many(COEFFICIENTS[0])
        for coefficient in COEFFICIENTS[1:]:
            series = builder.fadd(builder.fmul(series, r, **fuse), many(coefficient), **fuse)
        biased = ir.Constant(integers, [1023] * width)
        bits = builder.add(builder.bitcast(shifted, integers), biased)
        power = builder.shl(bits, ir.Constant(integers, [52] * width))
        return builder.fmul(series, builder.bitcast(power, reals), **fuse)

    return x(x), emit


MANTISSA, EXPONENT = (1 << 52) - 1, 0x4330000000000000  # the bits of 2⁵²: with n in the low ones, of 2⁵² + n
SERIES = [2.0 / k for k in range(21, 0, -2)]


@intrinsic
def log_lanes(typing_context, x):
    """log x, x positive and normal: x = 2ⁿ m, ½√2 < m ≤ √2; log m = 2 artanh f, a series in f = (m−1)/(m+1).

    Within 5e-16 of the true value, relative to it.
    """

    def emit(context, builder, signature, args):
        width = x.width
        reals, integers = ir.VectorType(DOUBLE, width), ir.VectorType(LONG, width)
        fuse = {"flags": ("contract",)}

        def many(number):
            return ir.Constant(reals, [number] * width)

        def whole(number):
            return ir.Constant(integers, [number] * width)

        bits = builder.bitcast(args[0], integers)
        raised = builder.or_(builder.lshr(bits, whole(52)), whole(EXPONENT))
        n = builder.fsub(builder.bitcast(raised, reals), many(2.0**52 + 1023.0))
        m = builder.or_(builder.and_(bits, whole(MANTISSA)), whole(1023 << 52))
        m = builder.bitcast(m, reals)
        large = builder.fcmp_ordered(">", m, many(2.0**0.5))
        m = builder.select(large, builder.fmul(m, many(0.5)), m)
        n = builder.select(large, builder.fadd(n, many(1.0)), n)
        f = builder.fdiv(builder.fsub(m, many(1.0)), builder.fadd(m, many(1.0)))
        square = builder.fmul(f, f)
        series = many(SERIES[0])
        for coefficient in SERIES[1:]:
            series = builder.fadd(builder.fmul(series, square, **fuse), many(coefficient), **fuse)
        low = builder.fadd(builder.fmul(f, series), builder.fmul(n, many(LN2_LOW), **fuse), **fuse)
        return builder.fadd(builder.fmul(n, many(LN2_HIGH), **fuse), low, **fuse)

    return x(x), emit


NEAR_ONE = [2.0 / k for k in range(37, 0, -2)]


@intrinsic
def log1p_lanes(typing_context, x):
    """log(1 + x), 0 ≤ x ≤ 1: 2 artanh f, a series in f = x/(2 + x) ≤ ⅓. Small x keep their digits.

    Within 5e-16 of the true value, relative to it.
    """

    def emit(context, builder, signature, args):
        fuse = {"flags": ("contract",)}

        def many(number):
            return ir.Constant(args[0].type, [number] * x.width)

        f = builder.fdiv(args[0], builder.fadd(args[0], many(2.0)))
        square = builder.fmul(f, f)
        series = many(NEAR_ONE[0])
        for coefficient in NEAR_ONE[1:]:
            series = builder.fadd(builder.fmul(series, square, **fuse), many(coefficient), **fuse)
        return builder.fmul(f, series)

    return x(x), emit
