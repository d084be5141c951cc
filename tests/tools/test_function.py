"""Tools from typed functions: schema, docstring, arguments, answers, failures."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from typing import Annotated, Literal, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from recto.conversation.json import Json, load, load_object
from recto.conversation.messages import File, Text, Url
from recto.conversation.next_step import INVALID_ARGUMENTS
from recto.errors import SettingsError, ToolError
from recto.tools.function import Function, make_tool
from recto.tools.mark import Mark, tool
from recto.tools.ports import ToolContext, ToolResult
from recto.tools.signature import read_signature
from tests.tools.runs import act, text_of


class Unit(Enum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


class Place(BaseModel):
    """Somewhere."""

    city: str
    title: str = "none"


@dataclass
class Weather:
    city: str
    degrees: float


def weather(
    city: Annotated[str, Field(description="Name of the city.")],
    days: Annotated[int, Field(ge=1, le=7)] = 1,
    unit: Literal["celsius", "kelvin"] = "celsius",
) -> str:
    """Tell the weather
    of a city.

    Not of a country.
    """
    return f"{city} {days} {unit}"


# What the model is offered


def test_a_function_is_offered_with_its_name_docstring_and_schema():
    offer = make_tool(weather).offer
    assert (offer.name, offer.description) == ("weather", "Tell the weather of a city.\n\nNot of a country.")
    assert offer.parameters == (
        '{"additionalProperties":false,"properties":{'
        '"city":{"description":"Name of the city.","type":"string"},'
        '"days":{"default":1,"maximum":7,"minimum":1,"type":"integer"},'
        '"unit":{"default":"celsius","enum":["celsius","kelvin"],"type":"string"}},'
        '"required":["city"],"type":"object"}'
    )


def test_titles_are_left_out_of_the_schema_but_not_a_field_of_that_name():
    def visit(place: Place, where: dict[str, str] = {"title": "x"}) -> None: ...  # noqa: B006 - a default is data

    city, title = {"type": "string"}, {"default": "none", "type": "string"}
    place = {"description": "Somewhere.", "required": ["city"], "type": "object"}
    where = {"additionalProperties": {"type": "string"}, "default": {"title": "x"}, "type": "object"}
    assert load(make_tool(visit).offer.parameters) == {
        "$defs": {"Place": {**place, "properties": {"city": city, "title": title}}},
        "additionalProperties": False,
        "properties": {"place": {"$ref": "#/$defs/Place"}, "where": where},
        "required": ["place"],
        "type": "object",
    }


def test_whatever_a_mark_says_the_tool_has_and_a_bare_one_promises_nothing():
    def search(words: str) -> str:
        return words

    built_tool = make_tool(tool(search))
    assert (built_tool.name, built_tool.mark) == ("search", Mark())
    built_tool = make_tool(tool(name="look-up", confirm=True, changes="files")(search))
    assert built_tool.mark == Mark(name="look-up", confirm=True, changes="files")
    assert (built_tool.name, search("x")) == ("look-up", "x")


# What the function gets


def test_parameters_may_have_names_that_models_of_pydantic_use():
    def ask(schema: str, copy: bool, model_config: int, _hidden: int = 4) -> str:
        return f"{schema} {copy} {model_config} {_hidden}"

    assert text_of(act(ask, '{"schema": "s", "copy": true, "model_config": 3}')) == "s True 3 4"


def test_the_context_is_given_and_not_in_the_schema():
    def whose(context: ToolContext, *, loud: bool = False) -> str:
        return context.owner.upper() if loud else context.owner

    assert "context" not in make_tool(whose).offer.parameters
    assert text_of(act(whose, '{"loud": true}')) == "ANN"
    assert act(whose, '{"context": {}}').error == INVALID_ARGUMENTS


def test_no_arguments_are_an_empty_object_and_a_default_is_not_shared_between_calls():
    def collect(items: list[int] = []) -> list[int]:  # noqa: B006 - that is what is tested
        items.append(1)
        return items

    assert [text_of(act(collect, arguments)) for arguments in ("", "  \n", "{}")] == ["[1]"] * 3


# What is wrong with arguments


def test_wrong_arguments_name_each_field_what_is_wrong_and_the_schema():
    result = act(weather, '{"days": 9, "unit": "miles", "town": "Ulm"}')
    assert result.error == INVALID_ARGUMENTS
    assert text_of(result) == (
        "The arguments do not match the tool's schema:\n"
        "- city: it is required, and missing\n"
        "- days: Input should be less than or equal to 7; it was 9\n"
        "- unit: Input should be 'celsius' or 'kelvin'; it was 'miles'\n"
        "- town: there is no such argument\n"
        f"The schema is {make_tool(weather).offer.parameters}\n"
        "Call the tool again with arguments that match it."
    )


@pytest.mark.parametrize("arguments", ["{", '{"city": }', "[]", "null", '"Ulm"', "\ud800", '{"city": "a"} x'])
def test_what_is_no_json_object_is_refused_with_advice(arguments: str):
    result = act(weather, arguments)
    assert result.error == INVALID_ARGUMENTS
    assert text_of(result).startswith("The arguments do not match the tool's schema:\n- arguments: ")


def test_of_many_problems_the_first_are_told_and_long_values_are_cut():
    def add(numbers: list[int]) -> None: ...

    words = text_of(act(add, '{"numbers": [' + ",".join(['"' + "x" * 5000 + '"'] * 30) + "]}"))
    assert "- numbers.9: " in words
    assert "- numbers.10: " not in words
    assert "- and 20 more" in words
    assert len(words) < 5000


@given(arguments=st.text())
def test_whatever_the_model_writes_gets_an_answer(arguments: str):
    result = act(weather, arguments)
    assert result.error in (None, INVALID_ARGUMENTS)
    assert text_of(result)


# Answers


def constant(value: object) -> Function:
    def answer() -> object:
        return value

    return answer


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("words", "words"),
        (None, "Done."),
        (True, "true"),
        ([1, "二"], '[1,"二"]'),
        ({"b": 1, "a": None}, '{"b":1,"a":null}'),
        (Weather(city="Ulm", degrees=1.5), '{"city":"Ulm","degrees":1.5}'),
        (Place(city="Ulm"), '{"city":"Ulm","title":"none"}'),
        (Unit.KELVIN, '"kelvin"'),
        ({"of": [10**30, -(10**30), 2**64 - 1]}, f'{{"of":[{10**30},{-(10**30)},{2**64 - 1}]}}'),
        ([float("nan"), float("inf"), "\ud800", "\0"], '[null,null,"\ufffd","\\u0000"]'),
    ],
)
def test_an_answer_becomes_text(value: object, text: str):
    assert act(constant(value)) == ToolResult(parts=(Text(text=text),))


def test_a_result_is_passed_on_as_it_is_and_what_has_no_form_in_json_is_a_failure():
    result = ToolResult(parts=(File(kind="image", source=Url(url="u")),), error="half")
    assert act(constant(result)) is result
    assert act(constant(object())).error == "failed"


def test_an_async_function_runs_on_the_loop_and_another_in_a_thread():
    async def here() -> bool:
        return elsewhere()

    def elsewhere() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert (text_of(act(here)), text_of(act(elsewhere))) == ("true", "false")


# Failures


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolError("There is no file a.txt.", status="missing"), "There is no file a.txt."),
        (ValueError("bad\nvalue"), "look failed: ValueError: bad\nvalue"),
        (TimeoutError(), "look failed: TimeoutError"),
        (StopIteration(), "look failed: RuntimeError: the function raised StopIteration"),
        (SystemExit(3), "look failed: SystemExit: 3"),
    ],
)
def test_a_tool_error_is_told_with_its_status_and_any_other_is_a_failure_and_logged(
    error: BaseException, text: str, caplog: pytest.LogCaptureFixture
):
    def look() -> str:
        raise error

    is_told = isinstance(error, ToolError)
    with caplog.at_level(logging.ERROR, logger="recto.tools"):
        assert act(look) == ToolResult(parts=(Text(text=text),), error="missing" if is_told else "failed")
    assert [(one.name, one.exc_info is not None) for one in caplog.records] == [("recto.tools", True)] * (not is_told)


# Functions that cannot be tools


def starred(*words: str) -> None: ...
def by_place(word: str, /) -> None: ...
def untyped(word) -> None: ...  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType] - tested
def of_unknown_type(word: "Nowhere") -> None: ...  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType] - tested # noqa: F821 - tested
def of_a_type_without_json(word: threading.Thread) -> None: ...
def yielding(word: str) -> Iterator[str]:
    yield word


@tool(name="天 气")
def misnamed() -> None: ...


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (starred, "'words' cannot be given by name"),
        (by_place, "'word' cannot be given by name"),
        (untyped, "'word' has no type hint"),  # pyright: ignore[reportUnknownArgumentType] - as above
        (of_unknown_type, "name 'Nowhere' is not defined"),
        (of_a_type_without_json, "JSON has no form for"),
        (yielding, "it yields"),
        (misnamed, "'天 气'"),
        (lambda: None, "'<lambda>'"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_by_name_and_file(function: Function, reason: str):
    with pytest.raises(SettingsError) as caught_error:
        make_tool(function)
    assert reason in str(caught_error.value)
    assert f"{function.__name__} in {__file__}:" in str(caught_error.value)
    with pytest.raises(SettingsError, match="a tool is made from a function"):
        make_tool(Place)


# Docstrings


HEAD = "Water a plant.\n\nNever at noon: the sun\nburns wet leaves.\n"
GOOGLE = f"""{HEAD}
Args:
    plant: Which one, by
        its name.
    litres (float): How much.

Returns:
    What the plant said.
"""
NUMPY = f"""{HEAD}
Parameters
----------
plant : str
    Which one, by
    its name.
litres : float, optional
    How much.

Returns
-------
str
    What the plant said.
"""
SPHINX = f"""{HEAD}
:param plant: Which one, by
    its name.
:param float litres: How much.
:returns: What the plant said.
"""
WHOLE = "Water a plant.\n\nNever at noon: the sun burns wet leaves.\n\n"


def water(plant: str, litres: float = 0.5) -> str:
    return f"{plant} {litres}"


def documented(docstring: str) -> tuple[str, dict[str, Json], tuple[str, ...]]:
    water.__doc__ = docstring
    built_tool = make_tool(water)
    return (
        built_tool.offer.description,
        properties_of(built_tool.offer.parameters),
        tuple(one.text for one in built_tool.warnings),
    )


def properties_of(schema: str) -> dict[str, Json]:
    return cast("dict[str, dict[str, Json]]", load_object(schema))["properties"]


@pytest.mark.parametrize(
    ("docstring", "returns"),
    [(GOOGLE, "Returns:\n    "), (NUMPY, "Returns\n-------\nstr\n    "), (SPHINX, ":returns: ")],
)
def test_C5_parameters_are_described_in_the_schema_and_the_rest_is_the_description(docstring: str, returns: str):
    description, properties, warnings = documented(docstring)
    assert description == f"{WHOLE}{returns}What the plant said."
    assert properties == {
        "plant": {"description": "Which one, by its name.", "type": "string"},
        "litres": {"default": 0.5, "description": "How much.", "type": "number"},
    }
    assert warnings == ()


ARGS = "Args:\n    plant: Which.\n    litres: How much.\n"
FIELDS = ":param plant: Which.\n:type plant: str\n:param litres: How much.\n"
SECTION = "Parameters\n----------\nplant : str\n    Which.\nlitres\n    How much.\n"


@pytest.mark.parametrize(
    ("docstring", "description"),
    [
        (f"Water.\n\n{ARGS}\nNote:\n    Never at noon.\n", "Water.\n\nNote:\n    Never at noon."),
        (f"Water.\n\n{ARGS}\nThe last\nwords.", "Water.\n\nThe last words."),
        (f"Water.\n\n{ARGS}\nRaises:\n    ValueError: When dry.", "Water.\n\nRaises:\n    ValueError: When dry."),
        (f"Water.\n\n{ARGS.replace('Args', 'Keyword Args')}", "Water."),
        (f"Water.\n{ARGS}", "Water."),
        (f"Water.\n\n{FIELDS}:raises ValueError: When dry.", "Water.\n\n:raises ValueError: When dry."),
        (f"Water.\n\n{SECTION}\nThe last\nwords.", "Water.\n\nThe last words."),
        (f"Water.\n\n{SECTION}\nRaises\n------\nDry", "Water.\n\nRaises\n------\nDry"),
        (f"Water.\n\n{SECTION.replace('Param', 'Other Param')}", "Water."),
        (ARGS, ""),
    ],
)
def test_C5_nothing_of_a_docstring_is_lost_beside_what_describes_parameters(docstring: str, description: str):
    text, properties, _ = documented(docstring)
    assert text == description
    assert properties == {
        "plant": {"description": "Which.", "type": "string"},
        "litres": {"default": 0.5, "description": "How much.", "type": "number"},
    }


@pytest.mark.parametrize(
    ("docstring", "description"),
    [
        ("Water a plant\nwith care.", "Water a plant with care."),
        ("Water a plant.\n\n- never at noon\n- never twice", "Water a plant.\n\n- never at noon\n- never twice"),
        ("Water a plant.\n\nExample:\n    water('fern')", "Water a plant.\n\nExample:\n    water('fern')"),
        ("Water a plant.\n\nArgs:\n    none", "Water a plant.\n\nArgs:\n    none"),
        ("Args: see the manual.", "Args: see the manual."),
    ],
)
def test_a_docstring_that_tells_of_no_parameter_is_the_description(docstring: str, description: str):
    assert documented(docstring)[0] == description


@given(st.text(st.sampled_from("ab:- \n\t()[]Args:Parameters----:param")))
def test_no_docstring_keeps_a_function_from_being_a_tool(docstring: str):
    description, properties, _ = documented(docstring)
    assert isinstance(description, str)
    assert list(properties) == ["plant", "litres"]


@pytest.mark.parametrize(
    ("docstring", "warning"),
    [
        ("", "water has no docstring, so the model knows it by its name alone. Say in one what it does, and when."),
        (ARGS, "the docstring of water tells of its parameters alone. Say first what it does, and when it is called."),
        (
            f"Water a plant.\n\n{ARGS.replace('plant', 'plants')}",
            "the docstring of water tells of 'plants', and there is no such parameter. Rename one of the two.",
        ),
    ],
)
def test_a_docstring_that_is_missing_or_tells_of_the_wrong_things_is_a_warning(docstring: str, warning: str):
    assert documented(docstring)[2] == (warning,)


def test_a_type_hint_stands_over_the_docstring_which_may_describe_a_context_too():
    def ask(words: Annotated[str, Field(description="Of the hint.", max_length=9)], context: ToolContext) -> None:
        """Ask.

        Args:
            words: Of the docstring.
            context: Of the run.
        """

    built_tool = make_tool(ask)
    schema = {"words": {"description": "Of the hint.", "maxLength": 9, "type": "string"}}
    assert (properties_of(built_tool.offer.parameters), built_tool.warnings) == (schema, ())


# Types that the page about agents tells of


def book(day: date, stay: timedelta, unit: Unit, places: list[Place], key: UUID | None = None) -> str:
    """Book a room."""
    return f"{day:%d %B} {stay.days} {unit.name} {places[0].city} {places[0].title} {key}"


def test_dates_enumerations_models_and_lists_have_schemas_and_arrive_as_python_values():
    properties = properties_of(read_signature(book).arguments.schema)
    assert [properties[name] for name in ("day", "unit")] == [
        {"format": "date", "type": "string"},
        {"$ref": "#/$defs/Unit"},
    ]
    arguments = '{"day": "2026-05-14", "stay": "P2D", "unit": "kelvin", "places": [{"city": "Ulm"}]}'
    assert text_of(act(book, arguments)) == "14 May 2 KELVIN Ulm none None"
