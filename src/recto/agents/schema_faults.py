"""JSON Schemas that people write: what is wrong with one, by its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from recto.config.checked import dotted, line_of, short
from recto.config.problem import Fault
from recto.config.yaml_values import Place, Values


def schema_faults(schema: Mapping[str, object], found: Values, where: Place) -> Iterator[Fault]:
    """What makes a schema none. It stands at a place of what was found."""
    import jsonschema_rs  # here: few agents have a schema, and every command would wait for it

    try:
        jsonschema_rs.validator_for(dict(schema), offline=True)
    except jsonschema_rs.ValidationError as error:
        place: Place = (*where, *error.instance_path)
        yield Fault(line=line_of(found, place), text=f"{_named(place)} is no JSON Schema: {short(error.message)}")
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        yield Fault(line=line_of(found, where), text=f"{_named(where)} is no JSON Schema: {short(str(error))}")


def _named(place: Place) -> str:
    return dotted(place) or "it"
