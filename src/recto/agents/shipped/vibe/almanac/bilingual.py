"""Texts in Chinese and English."""

from __future__ import annotations

from dataclasses import dataclass

from recto.page.prompt.reminder import Locale


@dataclass(frozen=True, kw_only=True)
class Bilingual:
    """A text in both languages."""

    zh: str
    en: str

    def in_locale(self, locale: Locale) -> str:
        return self.zh if locale == "zh" else self.en
