"""C4: of an agent that is there in several languages, the one that fits the words, else the browser."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.agent import CHAT
from recto.agents.spoken_language import accepted_language, choose_agent, language_of

VIBE = replace(CHAT, name="vibe", locale="zh")
AGENTS = {
    "vibe": VIBE,
    "vibe-en": replace(VIBE, name="vibe-en", locale="en", variant_of="vibe"),
    "shop": replace(CHAT, name="shop"),
    # A folder of its own: it is nobody's variant, whatever it is called.
    "shop-zh": replace(CHAT, name="shop-zh", locale="zh"),
}


@pytest.mark.parametrize(
    ("words", "language"),
    [
        ("帮我看看八字", "zh"),
        ("Read my bazi, please.", "en"),
        ("What does the word 八字 mean to people today?", "en"),
        ("", None),
        ("42 + 1 = ?", None),
        ("https://example.com/read-me", None),
        ("今日の運勢を教えて", None),
    ],
)
def test_C4_words_tell_their_language_by_their_letters_or_not_at_all(words: str, language: str | None):
    assert language_of(words) == language


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("en-US,en;q=0.9,zh-CN;q=0.8", "en"),
        ("de-DE, zh-TW;q=0.3, en;q=0.7", "en"),
        ("en;q=0.5, zh;q=0.5", "en"),
        ("zh;q=0, en;q=0.1", "en"),
        ("zh;q=1.0.0, en;q=0.1", "en"),
        ("fr, *;q=0.5", None),
        ("", None),
        (";;q=,,=;zh;q", None),
    ],
)
def test_C4_a_browser_s_languages_count_by_their_weights(header: str, language: str | None):
    assert accepted_language(header, ("zh", "en")) == language


@pytest.mark.parametrize(
    ("name", "words", "accept", "expected"),
    [
        pytest.param("vibe", "hello there", "zh-CN", "vibe-en", id="words before the browser"),
        pytest.param("vibe", "42", "en-US", "vibe-en", id="else by the browser"),
        pytest.param("vibe", "42", "fr", "vibe", id="else as it is"),
        pytest.param("vibe-en", "你好", "zh", "vibe-en", id="one of a definite language stays"),
        pytest.param("shop", "你好", "zh", "shop", id="in one language only"),
        pytest.param("nobody", "你好", "", "nobody", id="not there"),
    ],
)
def test_C4_the_words_choose_among_the_languages_of_an_agent(name: str, words: str, accept: str, expected: str):
    assert choose_agent(AGENTS, name, words, accept) == expected


@given(st.text(max_size=50), st.text(max_size=50))
def test_C4_whatever_is_said_and_sent_the_agent_stays_in_its_family(words: str, accept: str):
    assert choose_agent(AGENTS, "vibe", words, accept) in ("vibe", "vibe-en")
