"""Locales of agents: language codes in profiles and in client schemas."""

from __future__ import annotations

from typing import Literal

DEFAULT_LOCALE = "zh-CN"
# Locales of `uiSchema` by the language in an agent profile.
LOCALES = {"zh": DEFAULT_LOCALE, "en": "en-US"}


def language(locale: str) -> Literal["zh", "en"]:
    """Return the language of a locale: Chinese unless it is English."""
    return "en" if locale.lower().startswith("en") else "zh"
