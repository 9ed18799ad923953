"""Kernels that read decimal numbers from text held as a uint8 array.

Nothing here tests for the end of the array: the text must end in a byte that is in no number, a newline.
"""

import numpy as np

from fenchel._cache import njit

_ZERO, _PLUS, _MINUS, _DOT, _E = ord("0"), ord("+"), ord("-"), ord("."), ord("e")

MANY = 2**62  # stands for any integer of more than 18 digits
_EXACT = 2**53  # every integer up to here is a float64
_POWERS = np.array([float(10**k) for k in range(23)])  # the powers of ten that are float64 without rounding
_SPLIT = 2.0**27 + 1  # cuts a float64 into two halves of 26 bits


@njit(cache=True, nogil=True)
def scan_digits(text, at, number):
    """Append the digits that start at text[at] to the integer `number`; return (number or MANY, end)."""
    while True:
        digit = np.int64(text[at]) - _ZERO
        if digit < 0 or digit > 9:
            return number, at
        number = number * 10 + digit if number < 10**17 else MANY
        at += 1


@njit(cache=True, nogil=True)
def scan_exponent(text, at):
    """Read `e`, an optional sign and digits, if they are there; return (exponent, end)."""
    if text[at] | 32 != _E:
        return 0, at
    start = at + 1
    negative = text[start] == _MINUS
    if negative or text[start] == _PLUS:
        start += 1
    exponent, end = scan_digits(text, start, 0)
    if end == start:
        return 0, at
    return -exponent if negative else exponent, end


@njit(cache=True, nogil=True)
def scan_number(text, at):
    """Read the decimal number that starts at text[at]; return (value, end), with end == at if there is none.

    The value is Python's float() to the last bit, or nan where a few operations cannot make sure of that: the
    caller then gives text[at:end] to float().  "nan" and "inf" are no numbers here.
    """
    begin = at
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    mantissa, end = scan_digits(text, at, 0)
    digits, decimals = end - at, 0
    if text[end] == _DOT:
        mantissa, after = scan_digits(text, end + 1, mantissa)
        decimals = after - end - 1
        digits, end = digits + decimals, after
    if digits == 0:
        return 0.0, begin
    exponent, end = scan_exponent(text, end)
    value = _scale(mantissa, exponent - decimals)
    return -value if negative else value, end


@njit(cache=True, nogil=True)
def _scale(mantissa, exponent):
    """mantissa · 10^exponent correctly rounded, or nan where that is not certain."""
    if mantissa == 0:
        return 0.0
    if mantissa == MANY or exponent < -22 or exponent > 22:
        return np.nan
    if exponent == 0:
        return float(mantissa)
    if mantissa > _EXACT:
        return _divide_long(mantissa, _POWERS[-exponent]) if exponent < 0 else np.nan
    # Both numbers are exact, so that one operation rounds once (Clinger, PLDI 1990).
    return mantissa / _POWERS[-exponent] if exponent < 0 else mantissa * _POWERS[exponent]


@njit(cache=True, nogil=True)
def _divide_long(mantissa, power):
    """mantissa / power for a mantissa beyond 2^53, or nan if the quotient is too close to a tie.

    Shortest representations have up to 17 digits, so whole files can be like this, and with float() for each
    they took four times longer to read.
    """
    high = float(mantissa)
    low = float(mantissa - np.int64(high))
    quotient = high / power
    product, error = _multiply(quotient, power)
    correction = ((high - product) - error + low) / power  # off by two roundings, 2^-52 of itself
    value = quotient + correction * (1 - 2.0**-50)
    return value if value == quotient + correction * (1 + 2.0**-50) else np.nan


@njit(cache=True, nogil=True)
def _multiply(a, b):
    """Return (product, error) with a · b = product + error exactly (Dekker 1971)."""
    a_high, b_high = a * _SPLIT, b * _SPLIT
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
