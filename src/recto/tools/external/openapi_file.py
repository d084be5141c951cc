"""OpenAPI files (3.0 to 3.2) as operations, each with one schema for all its arguments.

References are resolved within the file; no other file is read. A circular reference accepts any value and adds a
warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

import yaml

from recto.conversation.json import Json, Object, load

SentPlace: TypeAlias = Literal["path", "query", "header", "cookie"]
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
SAFE, IDEMPOTENT = ("get", "head", "options"), ("put", "delete")
PLACES: tuple[SentPlace, ...] = ("path", "query", "header", "cookie")
# Headers that this client sets itself. Parameters with these names are ignored.
OUR_HEADERS = frozenset({"accept", "content-type", "authorization"})
BODY = "body"
MOST_BYTES, MOST_OPERATIONS, DEEPEST, MOST_NODES = 8 * 2**20, 2_000, 40, 20_000
JSON_TYPE = re.compile(r"application/(json|[\w.+-]+\+json)")
FORM_TYPE = "application/x-www-form-urlencoded"
PATH_FIELD = re.compile(r"\{([^{}/]+)\}")
# Keywords to drop. `nullable` becomes a type; the others do not affect validation.
UNUSED = frozenset({"discriminator", "xml", "externalDocs", "example", "examples", "deprecated", "nullable"})


class NotOpenApi(Exception):
    """A file that is not a usable OpenAPI file; the text is the reason."""


@dataclass(frozen=True, kw_only=True)
class HttpParameter:
    """A parameter of an operation. `argument` is the tool argument with its value; `name` and `place` say where the
    request carries it.
    """

    argument: str
    name: str
    place: SentPlace
    explode: bool = True


@dataclass(frozen=True, kw_only=True)
class SecurityScheme:
    """How a credential is sent: query field, header or cookie, with a `prefix`."""

    name: str
    place: SentPlace
    prefix: str = ""
    is_basic: bool = False


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation: address, arguments, and how they are sent. `body` is the media type of the body, if any."""

    name: str
    method: str
    path: str
    description: str
    schema: Json
    parameters: tuple[HttpParameter, ...] = ()
    body: str = ""
    # Arguments that are fields of the body. If `is_whole`, the argument `body` is the whole body instead.
    fields: tuple[str, ...] = ()
    is_whole: bool = False
    # Alternatives. Each is a set of security schemes that are needed together.
    security: tuple[tuple[str, ...], ...] = ()

    @property
    def may_repeat(self) -> bool:
        """True for methods that HTTP defines as idempotent."""
        return self.method in (*SAFE, *IDEMPOTENT)


@dataclass(frozen=True, kw_only=True)
class OpenApiFile:
    """The content of a file: operations, address, security schemes, and warnings for unusable parts."""

    operations: tuple[Operation, ...]
    server: str
    schemes: Mapping[str, SecurityScheme]
    warnings: tuple[str, ...]


def read_openapi(raw: bytes) -> OpenApiFile:
    """Return the operations of a file. Raises NotOpenApi if it is not one."""
    root = _values(raw)
    if not str(root.get("openapi", "")).startswith(("3.0", "3.1", "3.2")):
        raise NotOpenApi("it is no OpenAPI file of version 3: it begins with a line such as `openapi: 3.1.0`")
    reader = _Reader(root)
    operations = tuple(reader.operations())
    return OpenApiFile(
        operations=operations,
        server=reader.server(),
        schemes=dict(reader.schemes()),
        warnings=tuple(dict.fromkeys(reader.warnings)),
    )


def _values(raw: bytes) -> Object:
    if len(raw) > MOST_BYTES:
        raise NotOpenApi(f"it has more than {MOST_BYTES:,} bytes")
    try:
        text = raw.decode("utf-8-sig")
        if text.lstrip().startswith("{"):
            value = load(text)
        else:
            # Reject aliases, because nested ones can expand exponentially.
            events = cast("Iterator[yaml.Event]", yaml.parse(text, Loader=_PlainLoader))  # pyright: ignore[reportUnknownMemberType] - it has no types
            if any(isinstance(event, yaml.AliasEvent) for event in events):
                raise ValueError("aliases such as *name are not taken; use $ref")
            value = _with_text_keys(yaml.load(text, Loader=_PlainLoader))  # noqa: S506 - a safe one
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        problem = " ".join(str(error).split())[:300]
        raise NotOpenApi(f"it is no YAML or JSON: {problem}") from error
    if not isinstance(value, Mapping):
        raise NotOpenApi("it is no table of names and values")
    return value


class _PlainLoader(yaml.CSafeLoader):
    """YAML loader that reads dates as strings, because JSON has no dates."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _with_text_keys(value: object) -> Json:
    """Convert keys that YAML reads as numbers, such as 200, to strings."""
    match value:
        case dict():
            return {str(key): _with_text_keys(inner) for key, inner in cast("dict[object, object]", value).items()}
        case list():
            return [_with_text_keys(inner) for inner in cast("list[object]", value)]
        case str() | bool() | int() | float() | None:
            return value
        case _:
            raise ValueError(f"a value of type {type(value).__name__} is not taken")


@dataclass(kw_only=True)
class _Budget:
    """The number of schema nodes that may still be expanded."""

    nodes: int = MOST_NODES


class _Reader:
    """Reader of one file."""

    def __init__(self, root: Object) -> None:
        self._root = root
        self.warnings: list[str] = []

    def server(self) -> str:
        """Return the first absolute server URL, or an empty text."""
        for one in _list(self._root.get("servers")):
            url = str(_table(one).get("url", ""))
            variables = _table(_table(one).get("variables"))
            for name, variable in variables.items():
                url = url.replace(f"{{{name}}}", str(_table(variable).get("default", "")))
            if re.match(r"https?://", url):
                return url
        return ""

    def schemes(self) -> Iterator[tuple[str, SecurityScheme]]:
        """Yield the security schemes sent with a request; OAuth and OpenID tokens are sent as bearer tokens."""
        for name, one in _table(_table(self._root.get("components")).get("securitySchemes")).items():
            scheme = self._resolve(one)
            match str(scheme.get("type")), str(scheme.get("in")), str(scheme.get("scheme", "")).lower():
                case "apiKey", ("header" | "query" | "cookie") as place, _:
                    yield name, SecurityScheme(name=str(scheme.get("name", "")), place=place)
                case "http", _, "basic":
                    yield name, SecurityScheme(name="Authorization", place="header", prefix="Basic ", is_basic=True)
                case ("http", _, "bearer") | ("oauth2" | "openIdConnect", _, _):
                    yield name, SecurityScheme(name="Authorization", place="header", prefix="Bearer ")
                case _:
                    self.warnings.append(f"security scheme {name!r} is of a kind that is not known; it is left out")

    def operations(self) -> Iterator[Operation]:
        """Yield the callable operations. Add a warning for each other operation."""
        count = 0
        for path, item in _table(self._root.get("paths")).items():
            table = self._resolve(item)
            for method in [method for method in METHODS if method in table]:
                count += 1
                if count > MOST_OPERATIONS:
                    self.warnings.append(f"it has more than {MOST_OPERATIONS} operations; the rest are left out")
                    return
                try:
                    yield self._operation(path, method, table, self._resolve(table[method]))
                except NotOpenApi as error:
                    self.warnings.append(f"{method.upper()} {path} is left out: {error}")

    def _operation(self, path: str, method: str, item: Object, one: Object) -> Operation:
        # An operation's parameters override those of its path.
        rows = map(self._resolve, (*_list(item.get("parameters")), *_list(one.get("parameters"))))
        unique = {(str(row.get("in")), str(row.get("name"))): row for row in rows}
        properties, required = dict[str, Json](), list[str]()
        parameters = tuple(self._parameters(list(unique.values()), properties, required))
        missing = set(PATH_FIELD.findall(path)) - {each.name for each in parameters if each.place == "path"}
        if missing:
            raise NotOpenApi(f"its path has {{{min(missing)}}}, which no parameter gives")
        body = self._body(one, properties, required)
        texts = (_text(one, "summary"), _text(one, "description") or _text(item, "description"))
        description = "\n".join(dict.fromkeys(filter(None, texts)))
        requirements = one.get("security", self._root.get("security"))
        return Operation(
            name=_text(one, "operationId") or f"{method}_{path.strip('/')}",
            method=method,
            path=path,
            description=description or f"{method.upper()} {path}",
            schema={"type": "object", "properties": properties, "required": required, "additionalProperties": False},
            parameters=parameters,
            body=body.type,
            fields=body.fields,
            is_whole=body.is_whole,
            security=tuple([tuple(_table(each)) for each in _list(requirements)]),
        )

    def _parameters(
        self, parameters: Sequence[Object], properties: dict[str, Json], required: list[str]
    ) -> Iterator[HttpParameter]:
        names = [_text(each, "name") for each in parameters]
        for each in parameters:
            name, place = _text(each, "name"), each.get("in")
            if not name or place not in PLACES:
                raise NotOpenApi("it has a parameter without a name or a place")
            if place == "header" and name.lower() in OUR_HEADERS:
                continue
            # If several parameters have the same name, add the place to the argument's name.
            argument = name if names.count(name) == 1 else f"{name}_{place}"
            content = _table(each.get("content"))
            holder = _table(next(iter(content.values()))) if content else each
            schema = dict(self._expand(holder.get("schema", {}), (), _Budget()))
            about = _text(each, "description")
            properties[argument] = {**schema, "description": about} if about else schema
            if each.get("required") is True or place == "path":
                required.append(argument)
            style = each.get("style", "form" if place in ("query", "cookie") else "simple")
            if style not in ("form", "simple"):
                raise NotOpenApi(f"its parameter {name!r} is sent in the style {style}, which is not known here")
            yield HttpParameter(
                argument=argument, name=name, place=place, explode=bool(each.get("explode", style == "form"))
            )

    def _body(self, one: Object, properties: dict[str, Json], required: list[str]) -> _Body:
        """Read a JSON or form body. Its fields become arguments if all are known and none has a parameter's name."""
        described = self._resolve(one.get("requestBody"))
        content = _table(described.get("content"))
        if not content:
            return _Body()
        media = next((type for type in content if JSON_TYPE.match(type)), FORM_TYPE if FORM_TYPE in content else "")
        if not media:
            raise NotOpenApi(f"its body is {', '.join(content)[:100]}; JSON and forms are known here")
        schema = dict(self._expand(_table(content[media]).get("schema", {}), (), _Budget()))
        inner = _table(schema.get("properties"))
        needed = described.get("required") is True
        is_plain = schema.get("type", "object") == "object" and not {"allOf", "anyOf", "oneOf"} & schema.keys()
        if is_plain and inner and not set(inner) & set(properties) and not schema.get("additionalProperties"):
            properties |= inner
            required += [str(name) for name in _list(schema.get("required"))] if needed else []
            return _Body(type=media, fields=tuple(inner))
        if BODY in properties:
            raise NotOpenApi(f"it has a parameter {BODY!r} beside a body")
        properties[BODY] = schema
        required += [BODY] if needed else []
        return _Body(type=media, is_whole=True)

    def _expand(self, schema: Json, way: tuple[str, ...], budget: _Budget) -> Mapping[str, Json]:
        """Return a schema with its references expanded, and 3.0 keywords converted to JSON Schema."""
        if schema is True or schema is False:
            return {} if schema else {"not": {}}
        part = _table(schema)
        if isinstance(reference := part.get("$ref"), str):
            if reference in way:
                self.warnings.append(f"{reference} refers to itself; from there on any value is taken")
                return {}
            way = (*way, reference)
            beside = {key: value for key, value in part.items() if key != "$ref"}
            part = {**_table(self._target(reference)), **beside}
            return self._expand(part, way, budget)
        budget.nodes -= 1
        if budget.nodes < 0 or len(way) > DEEPEST:
            raise NotOpenApi("its schema, with all it refers to, is too large")
        result = {
            key: self._inner(key, value, way, budget)
            for key, value in part.items()
            if (key not in UNUSED and not key.startswith("x-"))
        }
        return _upgrade(result, is_nullable=part.get("nullable") is True)

    def _inner(self, key: str, value: Json, way: tuple[str, ...], budget: _Budget) -> Json:
        match key, value:
            case (("properties" | "patternProperties" | "$defs" | "definitions"), Mapping()):
                return {name: self._expand(one, way, budget) for name, one in value.items()}
            case (("allOf" | "anyOf" | "oneOf" | "prefixItems"), list()):
                return [self._expand(one, way, budget) for one in value]
            case (("items" | "additionalProperties" | "not" | "contains"), Mapping()):
                return self._expand(value, way, budget)
            case _:
                return value

    def _resolve(self, value: Json) -> Object:
        """Return a table, or the table that it refers to."""
        table = _table(value)
        for _ in range(DEEPEST):
            if not isinstance(reference := table.get("$ref"), str):
                return table
            table = _table(self._target(reference))
        raise NotOpenApi("its references go round in a circle")

    def _target(self, reference: str) -> Json:
        if not reference.startswith("#/"):
            raise NotOpenApi(f"it refers to {reference[:100]}, which is in another file; put all of it into one")
        value: Json = dict(self._root)
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is None:
            raise NotOpenApi(f"it refers to {reference[:100]}, which is not in it")
        return value


@dataclass(frozen=True, kw_only=True)
class _Body:
    """How arguments form a body."""

    type: str = ""
    fields: tuple[str, ...] = field(default=())
    is_whole: bool = False


def _upgrade(schema: dict[str, Json], *, is_nullable: bool) -> dict[str, Json]:
    """Convert 3.0's `nullable` and boolean exclusive bounds."""
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool):
            is_exclusive = schema.pop(exclusive)
            schema |= {exclusive: schema.pop(limit)} if is_exclusive and limit in schema else {}
    kind = schema.get("type")
    if is_nullable and isinstance(kind, str):
        schema["type"] = [kind, "null"]
        schema |= {"enum": [*values, None]} if isinstance(values := schema.get("enum"), list) else {}
    return schema


def _table(value: Json) -> Object:
    return value if isinstance(value, Mapping) else {}


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()


def _text(table: Object, name: str) -> str:
    value = table.get(name)
    return value.strip() if isinstance(value, str) else ""
