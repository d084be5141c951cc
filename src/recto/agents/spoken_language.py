"""Choice of the language variant of an agent for a new thread (C4).

The language of the message decides, else the browser's `Accept-Language`. Without either, the agent does not change.
The choice applies only to requests that name no agent. A thread keeps its agent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from recto.agents.agent import Agent
from recto.conversation.locale import language

HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# Letters of Japanese and Korean. Japanese text contains Han characters too, and Korean text may.
OTHER_CJK = re.compile("[\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af\u1100-\u11ff]")
LATIN = re.compile("[A-Za-z\u00c0-\u024f]+(?:['’-][A-Za-z\u00c0-\u024f]+)*")
BETWEEN_WORDS = re.compile(f"[\\s，。！？、；：]|{HAN.pattern}")
AROUND_WORDS = ".,;:!?\"'“”‘’()[]<>*_~…"
# Limit of foreign words per Chinese character in a Chinese text (`用 React 写一个 hook`). A text with more of them is
# foreign and quotes Chinese.
QUALITY_PARTS = 2


def choose_agent(agents: Mapping[str, Agent], name: str, words: str, accept: str) -> str:
    """Return an agent's name, or that of its variant in the language of a message or an `Accept-Language` header."""
    agent = agents.get(name)
    if agent is None or agent.variant_of is not None:
        return name
    variants = [one for one in agents.values() if one.variant_of == name]
    names_by_language = {language(one.locale): one.name for one in (*variants, agent)}
    message_language = language_of(words) or accepted_language(accept, names_by_language) if variants else None
    return names_by_language.get(message_language or "", name)


def language_of(words: str) -> str | None:
    """Return the language of a text, `zh` or `en`, by its letters. Return None if it is unclear.

    Ignore addresses and code.
    """
    han = len(HAN.findall(words))
    parts = (part.strip(AROUND_WORDS) for part in BETWEEN_WORDS.split(words))
    latin = sum(LATIN.fullmatch(part) is not None for part in parts)
    if OTHER_CJK.search(words) or not (han or latin):
        return None
    return "en" if latin > QUALITY_PARTS * han else "zh"


def accepted_language(header: str, languages: Collection[str]) -> str | None:
    """Return the known language that an `Accept-Language` header prefers, if any."""
    weights = dict[str, float]()
    for part in header.split(","):
        tag, _, weight = part.partition(";")
        match = re.fullmatch(r"\s*q=([01](?:\.\d{0,3})?)\s*", weight)
        value = 1.0 if not weight.strip() else float(match[1]) if match else 0.0
        name = tag.strip().partition("-")[0].lower()
        weights[name] = max(weights.get(name, 0.0), value)
    accepted_languages = [name for name in languages if weights.get(name, 0.0) > 0]
    # The order in the header breaks ties.
    order = list(weights)
    return min(accepted_languages, key=lambda name: (-weights[name], order.index(name)), default=None)
