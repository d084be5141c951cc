"""Cards drawn from a seed."""

import json
import re
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.shipped.vibe.almanac.tarot.tarot import DECK, SPREADS, draw
from recto.errors import ToolError

NAMES = st.sampled_from(sorted(SPREADS))


def test_S10_the_deck_has_22_major_and_56_minor_cards_no_two_alike() -> None:
    assert len(DECK) == 78
    assert [card.number for card in DECK if card.suit == "major"] == list(range(22))
    for suit in ("wands", "cups", "swords", "pentacles"):
        assert [card.number for card in DECK if card.suit == suit] == list(range(1, 15))
    assert len({card.name.zh for card in DECK}) == len({card.name.en for card in DECK}) == 78


@pytest.mark.parametrize(
    ("place", "chinese", "english"),
    [
        (0, "愚者", "The Fool"),
        (21, "世界", "The World"),
        (22, "权杖首牌", "Ace of Wands"),
        (77, "星币国王", "King of Pentacles"),
    ],
)
def test_S10_cards_have_their_names_in_both_languages(place: int, chinese: str, english: str) -> None:
    assert (DECK[place].name.zh, DECK[place].name.en) == (chinese, english)


def test_S10_every_card_has_three_keywords_either_way_up_in_both_languages() -> None:
    for card in DECK:
        for words in (card.upright, card.reversed):
            assert len(words.zh.split("、")) == len(words.en.split(", ")) == 3, card.name
            assert re.search(r"[\u4e00-\u9fff]", words.zh)
            assert words.en.isascii()
        assert card.upright != card.reversed


@pytest.mark.parametrize(
    ("spread", "cards"), [("single", 1), ("three", 3), ("relationship", 5), ("choice", 5), ("celtic_cross", 10)]
)
def test_S10_a_spread_has_as_many_cards_as_places(spread: str, cards: int) -> None:
    drawing = draw(spread, 7)
    assert len(drawing.cards) == len(SPREADS[spread].positions) == cards
    assert [card.position for card in drawing.cards] == list(SPREADS[spread].positions)


def test_S10_a_recorded_seed_draws_what_it_drew() -> None:
    # A new version of Python, or of the deck, must not change what was drawn: these cards are written down.
    row = draw("three", 7).row()
    assert (row["seed"], row["spread_name"]) == (7, "时间之流")
    cards = cast("list[dict[str, str]]", row["cards"])
    assert list(cards[0]) == ["position", "card", "orientation", "arcana", "keywords"]
    assert [" ".join(card.values()) for card in cards] == [
        "过去 圣杯三 逆位 圣杯 流言、过度放纵、被排除在外",
        "现在 愚者 逆位 大阿尔卡那 鲁莽、逃避、准备不足",
        "未来 星币国王 正位 星币 成就、稳固、慷慨",
    ]


@given(NAMES, st.integers())
def test_S10_no_card_is_drawn_twice_and_the_same_seed_draws_the_same(spread: str, seed: int) -> None:
    drawing = draw(spread, seed)
    assert len({card.card.name for card in drawing.cards}) == len(drawing.cards)
    assert draw(spread, seed) == drawing
    upright = draw(spread, seed, allow_reversed=False)
    assert [card.card for card in upright.cards] == [card.card for card in drawing.cards]
    assert not any(card.reversed for card in upright.cards)
    assert json.loads(json.dumps(drawing.row("en"))) == drawing.row("en")


def test_S10_every_card_comes_up_and_about_half_of_them_reversed() -> None:
    cards = [card for seed in range(200) for card in draw("celtic_cross", seed).cards]
    assert {card.card.name for card in cards} == {card.name for card in DECK}
    assert 0.45 < sum(card.reversed for card in cards) / len(cards) < 0.55


def test_S10_features_name_the_card_how_it_lies_and_both() -> None:
    result = draw("three", 7).features
    assert {"愚者", "逆位", "愚者逆位", "正位", "大阿尔卡那", "The Fool", "The Fool reversed"} <= set(result)
    assert "愚者正位" not in result


def test_S10_an_unknown_spread_is_refused_with_those_there_are() -> None:
    with pytest.raises(ToolError, match="single, three, relationship, choice, celtic_cross"):
        draw("horseshoe", 1)
