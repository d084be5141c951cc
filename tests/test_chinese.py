"""The Chinese texts we ship have Chinese punctuation: what a model or a user reads is written as Chinese is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import yaml

import recto
from recto.conversation.json import Json
from recto.skills.known_data import words_in

SOURCE = Path(recto.__file__).parent
VIBE = SOURCE / "agents" / "shipped" / "vibe"
HAN = "\u3400-\u9fff"
WESTERN = re.compile(rf"[{HAN}][,:;?!().]|[,:;?!()] ?[{HAN}]")
# Of the protocol, byte for byte.
PROTOCOL = (
    "# Input Files\n用户本次可用的文件:",
    "# Input datasets\n用户当前可用的知识库:",
    "将 <Quote></Quote> 中的内容作为本次对话的参考:\n<Quote>\n{{quote}}\n</Quote>",
)


def wordings(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the Chinese values in code: `zh=...`, and `"zh": ...` in a table."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "zh":
            yield node.value
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            yield from (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "zh")


def texts_of_code() -> Iterator[tuple[str, str]]:
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        # Parsing takes long, and most files have no Chinese.
        match = wordings(ast.parse(text)) if re.search(f"[{HAN}]", text) else ()
        parts = (part for wording in match for part in ast.walk(wording) if isinstance(part, ast.Constant))
        where = str(file.relative_to(SOURCE))
        yield from ((f"{where}:{part.lineno}", part.value) for part in parts if isinstance(part.value, str))


def texts_of_vibe() -> Iterator[tuple[str, str]]:
    """Yield the settings and texts of the agent, except for the English ones."""
    for file in sorted((*VIBE.rglob("*.md"), *VIBE.rglob("*.yaml"))):
        if ".en." in file.name:
            continue
        text, where = file.read_text(encoding="utf-8"), str(file.relative_to(SOURCE))
        _, settings, words = text.split("---\n", 2) if file.suffix == ".md" else ("", text, "")
        yield where, words
        yield from ((where, value) for value in words_in(cast("Json", yaml.safe_load(settings))))


def test_S9_chinese_texts_have_chinese_punctuation():
    texts = [*texts_of_code(), *texts_of_vibe()]
    assert sum(bool(re.search(f"[{HAN}]", text)) for _, text in texts) > 500
    wrong = [
        (where, match[0], text) for where, text in texts if text not in PROTOCOL if (match := WESTERN.search(text))
    ]
    assert wrong == []
