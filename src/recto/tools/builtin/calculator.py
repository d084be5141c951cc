"""The calculator tool. It evaluates a syntax tree without eval and rejects costly expressions."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, NamedTuple, TypeAlias

from pydantic import Field

from recto.errors import ToolError
from recto.tools.mark import tool

Number: TypeAlias = int | float

LONGEST_EXPRESSION = 500
# Size limit of numbers: about 3,000 digits, enough for 1000!. Each step takes microseconds.
MOST_BITS = 10_000
LARGEST_FACTORIAL = 1000
MOST_PLACES = 300
TOO_LARGE = "The result is too large: numbers may have about 3000 digits, and fractions stay below 1.8e308."
HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
SAME_AS = str.maketrans({"×": "*", "✕": "*", "÷": "/", "−": "-", "^": "**", "【": "(", "】": ")", "π": "pi"})
TOKEN = re.compile(r"\s+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])|[A-Za-z_]\w*|\*\*|//|[-+*/%(),]", re.ASCII)
CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e}


class _Function(NamedTuple):
    """A function and the number of its arguments. `most` None allows any number."""

    of: Callable[..., Number]
    least: int = 1
    most: int | None = 1


def _factorial(number: Number) -> int:
    if not isinstance(number, int) or not 0 <= number <= LARGEST_FACTORIAL:
        raise ToolError(f"factorial takes a whole number from 0 to {LARGEST_FACTORIAL}.")
    return math.factorial(number)


def _round(number: Number, places: Number = 0) -> Number:
    if not isinstance(places, int) or abs(places) > MOST_PLACES:
        raise ToolError(f"round takes a whole number of places, at most {MOST_PLACES}.")
    return round(number, places) if places else round(number)


def _absolute(number: Number) -> Number:
    return abs(number)


def _least(*numbers: Number) -> Number:
    return min(numbers)


def _greatest(*numbers: Number) -> Number:
    return max(numbers)


FUNCTIONS: Mapping[str, _Function] = {
    "sqrt": _Function(math.sqrt),
    "sin": _Function(math.sin),
    "cos": _Function(math.cos),
    "tan": _Function(math.tan),
    "log": _Function(math.log, most=2),
    "log10": _Function(math.log10),
    "exp": _Function(math.exp),
    "abs": _Function(_absolute),
    "round": _Function(_round, most=2),
    "floor": _Function(math.floor),
    "ceil": _Function(math.ceil),
    "min": _Function(_least, most=None),
    "max": _Function(_greatest, most=None),
    "factorial": _Function(_factorial),
}


@tool(safe_to_repeat=True)
def calculator(
    expression: Annotated[
        str,
        Field(
            description="Arithmetic such as (3 + 4) * sqrt(2). Operators: + - * / // % **. Functions: "
            f"{', '.join(FUNCTIONS)}; log(x) is natural, angles are in radians. Constants: pi, e."
        ),
    ],
) -> str:
    """Calculate an arithmetic expression exactly. Use it instead of calculating by heart."""
    if len(expression) > LONGEST_EXPRESSION:
        raise ToolError(f"The expression has {len(expression)} characters, {LONGEST_EXPRESSION} are allowed. Split it.")
    text = expression.translate(HALF_WIDTH).translate(SAME_AS).strip()
    try:
        return repr(_evaluate(_parse(text)))
    except ZeroDivisionError as error:
        raise ToolError(f"{expression!r} divides by zero.") from error
    except OverflowError as error:
        raise ToolError(TOO_LARGE) from error
    except RecursionError as error:
        raise ToolError("The expression is nested too deeply. Split it.") from error


def _parse(text: str) -> ast.expr:
    place = 0
    while place < len(text):
        token = TOKEN.match(text, place)
        if token is None:
            raise ToolError(f"Cannot read {text[place : place + 10]!r} at character {place + 1} of {text!r}.")
        place = token.end()
    try:
        return ast.parse(" ".join(text.split()), mode="eval").body
    except (SyntaxError, ValueError, MemoryError) as error:
        hint = " % is the remainder; write a percentage as /100." if "%" in text else ""
        raise ToolError(f"{text!r} is no arithmetic expression: {error}.{hint}") from error


def _evaluate(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _check_number(value)
        case ast.Name(id=name):
            if name.lower() not in CONSTANTS:
                raise ToolError(f"There is no constant {name!r}. Known are pi and e; put numbers in for the others.")
            return CONSTANTS[name.lower()]
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _evaluate(operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            return _check_number(OPERATORS[type(sign)](_evaluate(left), _evaluate(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _call(name, [_evaluate(arg) for arg in args])
        case _:
            raise ToolError(f"{ast.unparse(node)!r} is no arithmetic. Use numbers, + - * / // % ** and functions.")


def _check_number(value: object) -> Number:
    """Return the value if it is a number of acceptable size."""
    match value:
        case int() if value.bit_length() <= MOST_BITS:
            return value
        case float() if math.isfinite(value):
            return value
        case complex():
            raise ToolError("The result is no real number: a negative number has no fractional power.")
        case _:
            raise ToolError(TOO_LARGE)


def _call(name: str, numbers: list[Number]) -> Number:
    function = FUNCTIONS.get(name.lower())
    if function is None:
        raise ToolError(f"There is no function {name!r}. Known are {', '.join(FUNCTIONS)}.")
    least, most = function.least, function.most
    if len(numbers) < least or (most is not None and len(numbers) > most):
        others = "" if most == least else " or more" if most is None else f" or {most}"
        raise ToolError(f"{name} was given {len(numbers)} numbers; it takes {least}{others}.")
    try:
        return _check_number(function.of(*numbers))
    except ValueError as error:
        values = ", ".join(f"{number:g}" for number in numbers)
        raise ToolError(f"{name}({values}) has no value: it is outside of what {name} is defined for.") from error


def _product(left: Number, right: Number) -> Number:
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > MOST_BITS + 1:
        raise ToolError(TOO_LARGE)
    return left * right


def _power(base: Number, exponent: Number) -> object:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(base) > 1 and exponent > MOST_BITS / math.log2(abs(base)):
        raise ToolError(TOO_LARGE)
    return base**exponent


OPERATORS: Mapping[type[ast.operator], Callable[[Number, Number], object]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: _product,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
    ast.Pow: _power,
}
