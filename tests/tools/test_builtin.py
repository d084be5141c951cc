"""The calculator, exact and fast, and the clock."""

from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import ToolError
from recto.tools.builtin.calculator import LONGEST_EXPRESSION, MOST_BITS, calculator
from recto.tools.builtin.current_time import current_time
from tests.tools.runs import context

VALUES = {
    "2 ** 3 ** 2 + 2 ** -1": "512.5",
    "+-+1": "-1",
    "2 ** 100": "1267650600228229401496703205376",
    "1_000 * 1e3": "1000000.0",
    "sqrt(16) + abs(-2)": "6.0",
    "round(2.567, 2) + round(1234, -2)": "1202.57",
    "round(2.5) + floor(2.7) + ceil(2.1)": "7",
    "min(3, 1, 2) + max(4)": "5",
    "log(8, 2) + log10(1000) + exp(0)": "7.0",
    "sin(0) + cos(0) + tan(0)": "1.0",
    "factorial(20)": "2432902008176640000",
    "PI - pi + e - E": "0.0",
    "1 ** 10 ** 3000": "1",
    "３ × （４ ＋ ５） ÷ ２": "13.5",
    "2^10 − 24": "1000",
    "1 +\n  2": "3",
}
REASONS = {
    "1 / 0": "divides by zero",
    "1 % 0": "divides by zero",
    "0 ** -1": "divides by zero",
    "sqrt(-4)": "sqrt(-4) has no value",
    "(-8) ** 0.5": "no real number",
    "x + 1": "There is no constant 'x'",
    "cbrt(8)": "There is no function 'cbrt'. Known are sqrt, sin",
    "sqrt(1, 2)": "sqrt was given 2 numbers; it takes 1.",
    "log()": "log was given 0 numbers; it takes 1 or 2.",
    "min()": "min was given 0 numbers; it takes 1 or more.",
    "factorial(-1)": "from 0 to 1000",
    "factorial(2.5)": "from 0 to 1000",
    "50%": "write a percentage as /100",
    "": "is no arithmetic expression",
    "5²": "Cannot read '²' at character 2",
    "1 if 2 else 3": "is no arithmetic",
    "1if 2else 3": "Cannot read '1if 2else '",
    "min(*1)": "is no arithmetic",
    "True": "'True' is no arithmetic",
    "a.b": "Cannot read '.b'",
    "[1] * 3": "Cannot read",
}
TOO_MUCH = [
    *("9**9**9", "(-9)**9**9", "2**9999*2**9999", "factorial(10**9)", "factorial(1000)*factorial(1000)", "1<<10**9"),
    *("1e308*10", "1e999", "1.5**1e6", "10**400/3", "10**400*1.0", "exp(1000)", "sqrt(10**1000)"),
    *("round(5,-10**9)", "round(1.5,10**9)", "(" * 240 + "1" + ")" * 240, "1" * 501, "1" + "+1" * 2000),
]


@pytest.mark.parametrize("expression", VALUES)
def test_an_expression_has_its_value(expression: str):
    assert calculator(expression) == VALUES[expression]


@pytest.mark.parametrize("expression", REASONS)
def test_what_has_no_value_says_why(expression: str):
    with pytest.raises(ToolError) as caught_error:
        calculator(expression)
    assert REASONS[expression] in str(caught_error.value)


@pytest.mark.parametrize("expression", TOO_MUCH)
def test_what_would_take_long_or_much_is_refused_at_once(expression: str):
    with pytest.raises(ToolError):
        calculator(expression)


def numbers() -> st.SearchStrategy[str]:
    return st.one_of(st.integers(0, 99).map(str), st.floats(0, 99).map(lambda number: f"{number:.3f}"))


def join_operators(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(("+", "-", "*", "/", "//", "%"))
    return st.one_of(
        st.tuples(inner, operators, inner).map(" ".join),
        inner.map(lambda one: f"({one})"),
        inner.map(lambda one: f"-{one}"),
        inner.map(lambda one: f"({one}) ** 2"),
        st.tuples(inner, inner).map(lambda two: f"max({two[0]}, {two[1]})"),
    )


@given(expression=st.recursive(numbers(), join_operators, max_leaves=8))
def test_small_expressions_have_the_value_python_gives_them(expression: str):
    try:
        expected = repr(eval(expression))
    except (ZeroDivisionError, OverflowError):
        expected = "none"
    try:
        assert calculator(expression) == expected
    except ToolError as error:
        assert expected == "none" or "large" in str(error)


SCRAPS = st.lists(st.sampled_from([*"*%-(), 9x²", "1e9", ".5", "**", "//", "factorial", "round", "log"]), max_size=60)


@given(expression=st.one_of(st.text(max_size=LONGEST_EXPRESSION + 50), SCRAPS.map("".join)))
def test_any_text_has_a_bounded_value_or_a_reason(expression: str):
    try:
        assert len(calculator(expression)) < MOST_BITS // 3
    except ToolError as error:
        assert str(error)


# What time it is


SHANGHAI = ZoneInfo("Asia/Shanghai")


@pytest.mark.parametrize(
    ("zone", "name", "text"),
    [
        (SHANGHAI, None, "2026-05-14 12:00:00 Thursday, Asia/Shanghai (UTC+08:00)"),
        (UTC, "", "2026-05-14 04:00:00 Thursday, UTC (UTC+00:00)"),
        (SHANGHAI, "America/St_Johns", "2026-05-14 01:30:00 Thursday, America/St_Johns (UTC-02:30)"),
        (timezone(timedelta(hours=-5)), None, "2026-05-13 23:00:00 Wednesday, UTC-05:00 (UTC-05:00)"),
    ],
)
def test_the_time_is_the_runs_in_the_zone_asked_for(zone: tzinfo, name: str | None, text: str):
    assert current_time(context(zone), name) == text


@pytest.mark.parametrize("name", ["Mars/Olympus", "Asia", "../etc/passwd", "\0", "\ud800", "x" * 5000])
def test_an_unknown_zone_is_named(name: str):
    with pytest.raises(ToolError, match="There is no time zone"):
        current_time(context(), name)
