"""Function signatures as JSON Schema, with validation of arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic_core import ErrorDetails, to_jsonable_python

from recto.conversation.json import Json, dump, scrub
from recto.errors import SettingsError

GOOGLE = re.compile(r"(?P<indent> *)(?:(?:Keyword |Other )?(?:Args|Arguments|Parameters)|Params):\s*")
NUMPY = re.compile(r"(?:Other )?Parameters\s*")
UNDERLINE = re.compile(r"-{3,}\s*")
SPHINX = re.compile(r":(?:param|parameter|arg|argument|key|keyword|type)\s[^:]*:")
# Dropped lines, because type hints give the types.
TYPE = re.compile(r":type\s[^:]*:")
# A NumPy-style parameter line, such as `x, y : int`. A sentence does not match: several names need commas between them.
NUMPY_NAME = re.compile(r"\*{0,2}\w+(?:, ?\*{0,2}\w+)*(?:\s*:.*)?")
# A continuation line: neither indented nor a list item.
GOES_ON = re.compile(r"[^\s\-*\d:]")
ArgumentValues: TypeAlias = Mapping[str, object]
Function: TypeAlias = Callable[..., object]

# The model needs only the first problems of a wrong call.
PROBLEMS_SHOWN = 10
INPUT_SHOWN = 200
# Keywords whose values are data, in which "title" is an ordinary key.
DATA_KEYWORDS = frozenset({"default", "const", "enum", "examples"})
BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
DONE = "Done."
NO_DOCSTRING = "{name} has no docstring, so the model knows it by its name alone. Say in one what it does, and when."
NO_SUMMARY = "the docstring of {name} tells of its parameters alone. Say first what it does, and when it is called."
NO_PARAMETER = "the docstring of {name} tells of {given!r}, and there is no such parameter. Rename one of the two."


def read_docstring(text: str) -> tuple[str, Mapping[str, str]]:
    """Return the description without its parameter sections, and the description of each parameter."""
    if "\n" not in text:
        return text.strip(), {}
    lines, rest, at = text.splitlines(), list[str](), 0
    texts: dict[str, str] = {}
    # If the heading is on the first line, inspect.getdoc removed the indentation of the lines below. Restore it.
    if GOOGLE.fullmatch(lines[0]) and lines[1][:1].strip():
        lines[1:] = [f"    {line}" if line else "" for line in lines[1:]]
    while at < len(lines):
        block, end = _find_section(lines, at)
        parameters = _parse_parameters(block) if block else {}
        texts |= parameters
        # Replace a removed section by a blank line, so that the texts around it are not joined.
        rest += [""] if parameters or TYPE.match(lines[at]) else lines[at:end]
        at = end
    # Join wrapped lines.
    result = list[str]()
    for line in rest:
        before = result[-1] if result else ""
        if before[:1].strip() and not UNDERLINE.fullmatch(before) and GOES_ON.match(line):
            result[-1] = f"{before.rstrip()} {line}"
        else:
            result.append(line)
    return re.sub(r"\n\s*\n(?=\s*\n)", "\n", "\n".join(result)).strip(), texts


def _find_section(lines: Sequence[str], at: int) -> tuple[str, int]:
    """Return the parameter section that starts at this line, as text for the parser, and the index after it."""
    if heading := GOOGLE.fullmatch(lines[at]):
        indent = len(heading["indent"])
        end = _find_end(lines, at + 1, lambda line, _: len(line) - len(line.lstrip()) > indent)
        return "\n".join(["Of it.", "", "Args:", *lines[at + 1 : end]]), end
    if NUMPY.fullmatch(lines[at]) and UNDERLINE.fullmatch("".join(lines[at + 1 : at + 2])):
        end = _find_end(
            lines,
            at + 2,
            lambda line, after: line[0].isspace() or not after or (NUMPY_NAME.fullmatch(line.rstrip()) is not None),
        )
        # Stop before the next section's heading, which looks like a parameter name.
        end = next((place - 1 for place in range(at + 3, end) if UNDERLINE.fullmatch(lines[place])), end)
        return "\n".join(["Of it.", "", "Parameters", "----------", *lines[at + 2 : end]]), end
    if SPHINX.match(lines[at]):
        end = _find_end(lines, at + 1, lambda line, after: line[0].isspace() or (not after and line[0] != ":"))
        return "\n".join(["Of it.", "", *lines[at:end]]), end
    return "", at + 1


def _find_end(lines: Sequence[str], start: int, belongs: Callable[[str, bool], bool]) -> int:
    """Return the end of a section. `belongs` receives a non-blank line and whether a blank line precedes it."""
    end = start
    for place in range(start, len(lines)):
        if not lines[place].strip():
            continue
        if not belongs(lines[place], place > end):
            break
        end = place + 1
    return end


def _parse_parameters(block: str) -> dict[str, str]:
    from docstring_parser import ParseError, parse  # here: few docstrings need a parser

    try:
        parameters = parse(block).params
    except ParseError:
        return {}
    return {
        name.strip(" *"): " ".join((one.description or "").split())
        for one in parameters
        for name in one.arg_name.split(",")
    }


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One argument: name, type hint, and default as (value,), or () if it is required."""

    name: str
    hint: object
    default: tuple[object, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """All arguments of one function. `schema` is canonical JSON text."""

    names: tuple[str, ...]
    schema: str
    model: type[BaseModel]

    def read(self, text: str) -> ArgumentValues | str:
        """Return the values of the arguments, or a text for the model that lists the problems."""
        try:
            read = self.model.model_validate_json(scrub(text) if text.strip() else "{}")
        except ValidationError as error:
            problems = error.errors(include_url=False)
            lines = ["The arguments do not match the tool's schema:", *map(_line, problems[:PROBLEMS_SHOWN])]
            if len(problems) > PROBLEMS_SHOWN:
                lines.append(f"- and {len(problems) - PROBLEMS_SHOWN} more")
            return "\n".join(
                [*lines, f"The schema is {self.schema}", "Call the tool again with arguments that match it."]
            )
        return {name: getattr(read, _field(place)) for place, name in enumerate(self.names)}


@dataclass(frozen=True, kw_only=True)
class FunctionSignature:
    """Description and arguments of a function. `warnings` are problems in the docstring."""

    description: str
    arguments: Arguments
    injected: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_signature(function: Function, context_type: type | None = None) -> FunctionSignature:
    """Return the signature of a function. Parameters of type `context_type` are injected and are not arguments.

    Raise SettingsError, with function and file, for a function that no model could call.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise tool_error(function, "it yields; return the whole answer instead")
    try:
        hints = cast("dict[str, object]", get_type_hints(function, include_extras=True))
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise tool_error(function, f"a type hint cannot be read: {error}; import the type in the same file") from error
    plain = {name: get_args(hint)[0] if get_origin(hint) is Annotated else hint for name, hint in hints.items()}
    others = tuple([name for name, hint in plain.items() if name != "return" and context_type and hint is context_type])
    description, texts = read_docstring(inspect.getdoc(function) or "")
    arguments_in = [argument for argument in _arguments(function, hints) if argument.name not in others]
    try:
        arguments = build_arguments([_describe(argument, texts.get(argument.name)) for argument in arguments_in])
    except (PydanticUserError, NameError, TypeError, ValueError) as error:
        problem = str(error).partition("\n")[0]
        raise tool_error(function, f"a parameter has a type that JSON has no form for: {problem}") from error
    unknown = [NO_PARAMETER.format(name=function.__name__, given=one) for one in texts if one not in hints]
    missing = [] if description else [(NO_SUMMARY if texts else NO_DOCSTRING).format(name=function.__name__)]
    return FunctionSignature(
        description=description, arguments=arguments, injected=others, warnings=(*missing, *unknown)
    )


def format_answer(value: object) -> str:
    """Return a function's value as the model reads it: strings as they are, anything else as JSON."""
    if value is None:
        return DONE
    return value if isinstance(value, str) else dump(to_jsonable_python(value)).decode()


def tool_error(function: Function, problem: str) -> SettingsError:
    """Return the error for a function that cannot be a tool."""
    return SettingsError(name="tool", value=format_origin(function), allowed=problem)


def format_origin(function: Function) -> str:
    """Return name, file and line, for people."""
    code = inspect.unwrap(function).__code__
    return f"{function.__qualname__} in {code.co_filename}:{code.co_firstlineno}"


def _arguments(function: Function, hints: Mapping[str, object]) -> Iterator[Argument]:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in BY_NAME:
            raise tool_error(
                function, f"parameter {parameter.name!r} cannot be given by name; a model names its arguments"
            )
        if parameter.name not in hints:
            raise tool_error(function, f"parameter {parameter.name!r} has no type hint; give it one")
        default = cast("object", parameter.default)
        defaults = () if default is inspect.Parameter.empty else (default,)
        yield Argument(name=parameter.name, hint=hints[parameter.name], default=defaults)


def _describe(argument: Argument, text: str | None) -> Argument:
    """Add the description from the docstring, unless the type hint has one."""
    if not text:
        return argument
    is_annotated = get_origin(argument.hint) is Annotated
    base, *metadata = get_args(argument.hint) if is_annotated else (argument.hint,)
    return replace(argument, hint=Annotated[(base, Field(description=text), *metadata)])


def build_arguments(arguments: Sequence[Argument]) -> Arguments:
    """Return the arguments as a pydantic model. Raises pydantic's error for an unsupported type."""
    # Generate the field names, because a parameter may be called `schema` or `copy`, which pydantic fields may not.
    fields = {
        _field(place): (
            Annotated[argument.hint, Field(alias=argument.name)],
            argument.default[0] if argument.default else ...,
        )
        for place, argument in enumerate(arguments)
    }
    # The field types are known only at run time, which the overloads of create_model cannot express.
    make = cast("Callable[..., type[BaseModel]]", create_model)
    model = make("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
    schema = _without_titles(cast("Json", model.model_json_schema()))
    names = tuple([argument.name for argument in arguments])
    return Arguments(names=names, schema=dump(schema).decode(), model=model)


def _field(place: int) -> str:
    return f"argument_{place}"


def _without_titles(schema: Json) -> Json:
    """Remove titles, which repeat the names and cost tokens."""
    match schema:
        case dict():
            fields = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
            return {key: value if key in DATA_KEYWORDS else _without_titles(value) for key, value in fields.items()}
        case list():
            return [_without_titles(inner) for inner in schema]
        case _:
            return schema


def _line(problem: ErrorDetails) -> str:
    where = ".".join(map(str, problem["loc"])) or "arguments"
    if problem["type"] == "missing":
        return f"- {where}: it is required, and missing"
    if problem["type"] == "extra_forbidden":
        return f"- {where}: there is no such argument"
    value = repr(problem["input"])
    return f"- {where}: {problem['msg']}; it was {value[:INPUT_SHOWN]}{' ...' if len(value) > INPUT_SHOWN else ''}"
