"""A tool's docstring: what it says of the whole is the description, what it says of a parameter is in the schema."""

from datetime import date, timedelta
from enum import Enum
from typing import Annotated, Literal, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from recto.conversation.json import Json, load_object
from recto.tools.function import tool_from
from recto.tools.ports import ToolContext
from recto.tools.signature import signature_of
from tests.tools.runs import act, text_of

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
    made = tool_from(water)
    return made.offer.description, properties_of(made.offer.parameters), tuple(one.text for one in made.warnings)


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
    found, properties, _ = documented(docstring)
    assert found == description
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

    made = tool_from(ask)
    schema = {"words": {"description": "Of the hint.", "maxLength": 9, "type": "string"}}
    assert (properties_of(made.offer.parameters), made.warnings) == (schema, ())


# Types that the page about agents tells of


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Guest(BaseModel):
    name: str
    diet: Literal["any", "vegan"] = "any"


def book(day: date, stay: timedelta, size: Size, guests: list[Guest], key: UUID | None = None) -> str:
    """Book a room."""
    return f"{day:%d %B} {stay.days} {size.name} {guests[0].name} {guests[0].diet} {key}"


def test_dates_enumerations_models_and_lists_have_schemas_and_arrive_as_python_values():
    assert properties_of(signature_of(book).arguments.schema) | {"key": None} == {
        "day": {"format": "date", "type": "string"},
        "stay": {"format": "duration", "type": "string"},
        "size": {"$ref": "#/$defs/Size"},
        "guests": {"items": {"$ref": "#/$defs/Guest"}, "type": "array"},
        "key": None,
    }
    arguments = '{"day": "2026-05-14", "stay": "P2D", "size": "large", "guests": [{"name": "Ada"}]}'
    assert text_of(act(book, arguments)) == "14 May 2 LARGE Ada any None"
