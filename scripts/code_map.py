"""Write docs/code-map.md: every module of `src/recto` with the first sentence of its docstring."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "code-map.md"
HEAD = """# Code map

All modules, in the order of the layers: a package imports only packages above it in this list.
`make code-map` generates this page from the module docstrings. [Flow](flow.md) follows a request through them.
"""


def code_map(packages: list[str]) -> str:
    """Return the page for these packages and modules, in this order."""
    source = ROOT / "src" / "recto"
    parts = [HEAD]
    for name in packages:
        folder = source / name.replace(".", "/")
        parts.append(
            _section(folder) if folder.is_dir() else f"\n## {name}.py\n\n{_summary(folder.with_suffix('.py'))}\n"
        )
    return "".join(parts)


def _section(folder: Path) -> str:
    """Return one package with its modules, then its subpackages."""
    name = folder.relative_to(ROOT / "src" / "recto").as_posix()
    init = folder / "__init__.py"
    text = f"\n{'#' * (2 + name.count('/'))} {name}\n"
    text += f"\n{_summary(init)}\n" if init.exists() and init.read_text(encoding="utf-8").strip() else ""
    modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    if modules:
        text += "\n| module | content |\n|---|---|\n"
        text += "".join(
            f"| [{path.stem}](../{path.relative_to(ROOT).as_posix()}) | {_summary(path)} |\n" for path in modules
        )
    inside = [path for path in sorted(folder.iterdir()) if path.is_dir() and any(path.rglob("*.py"))]
    return text + "".join(_section(path) for path in inside if path.name not in ("versions", "shipped"))


def _summary(path: Path) -> str:
    """Return the first sentence of a module's docstring, as one line of a table."""
    document = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(document.split("\n\n")[0].split())
    sentence = re.split(r"(?<=\.)\s+(?=[A-Z`])", paragraph)[0]
    return sentence.replace("|", "\\|")


def layer_order() -> list[str]:
    """Return the packages and single modules from the lowest layer to the highest."""
    from tests.layers import LAYERS

    names = [name for layer in LAYERS for name in layer if name != "__main__"]
    return [("agents.shipped" if name == "shipped" else name) for name in names] + ["__main__", "testing"]


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(ROOT))
    PAGE.write_text(code_map(layer_order()), encoding="utf-8")
