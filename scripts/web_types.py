"""Write web/src/api/schema.ts again: the API's types for the web page, from the server's own description of it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from recto.api.description import describe
from recto.api.server import ROUTES
from recto.conversation.json import Json, dump

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
SCHEMA = WEB / "src" / "api" / "schema.ts"
NODE = ("sh", str(ROOT / "scripts" / "node.sh"))


def write_types(description: Path, types: Path) -> None:
    """Write the description of the API to a file, and what it means in TypeScript to another."""
    description.write_bytes(dump(_without_examples(describe(ROUTES))))
    # As `npm run types` in web/ does, which has its paths from there.
    tool = WEB / "node_modules" / ".bin" / "openapi-typescript"
    command = [*NODE, str(tool), str(description), "--output", str(types)]
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"The types were not written:\n{done.stdout}{done.stderr}")


def _without_examples(described: Json) -> Json:
    """The shapes alone. The page shows a refusal's words, whatever route they are of."""
    match described:
        case dict():
            fields = {name: inner for name, inner in described.items() if name not in ("example", "examples")}
            refusals = [name for name, inner in fields.items() if isinstance(inner, dict) and _is_refusal(inner)]
            return {name: _without_examples(inner) for name, inner in fields.items() if name not in refusals}
        case list():
            return [_without_examples(inner) for inner in described]
        case _:
            return described


def _is_refusal(answer: Mapping[str, Json]) -> bool:
    return str(answer.get("$ref", "")).startswith("#/components/responses/")


if __name__ == "__main__":
    write_types(WEB / "openapi.json", SCHEMA)
