"""The locale of an agent: the wording it gets, and what clients call it."""

from __future__ import annotations

from typing import Literal

DEFAULT_LOCALE = "zh-CN"
# What an agent calls its language, and what a schema calls it.
LOCALES = {"zh": DEFAULT_LOCALE, "en": "en-US"}


def language(locale: str) -> Literal["zh", "en"]:
    """The wording a locale gets: Chinese unless it is English."""
    return "en" if locale.lower().startswith("en") else "zh"
