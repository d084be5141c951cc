"""Translation of the terminal's texts: English ones are in the code, Chinese ones in `zh.toml`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal


def terminal_language() -> Literal["en", "zh"]:
    """Return the language of the first locale variable that is set; English unless it is Chinese."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    return "zh" if locale.lower().startswith("zh") else "en"


def _(text: str) -> str:
    """Return a text in the language of the terminal. Format its placeholders afterwards."""
    return translations("texts").get(text, text)


def code_name(code: str, table: str = "codes") -> str:
    """Return the display name of a code, such as a decision or the kind of a part."""
    return translations(table).get(code, code.replace("_", " "))


def translations(table: str) -> Mapping[str, str]:
    """Return a table of the terminal's language, by English text or code; empty for English."""
    return _chinese()[table] if terminal_language() == "zh" else {}


@cache
def _chinese() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(Path(__file__).with_name("zh.toml").read_text(encoding="utf-8"))
