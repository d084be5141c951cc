"""Spreads of tarot cards, drawn from a seed: the same seed draws the same. Refuses any chance of its own."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.agents.shipped.vibe.almanac.tarot.tarot_deck import ARCANA, DECK, Card
from recto.conversation.json import Json
from recto.errors import ToolError
from recto.page.prompt.reminder import Locale

UPRIGHT, REVERSED = Bilingual(zh="正位", en="upright"), Bilingual(zh="逆位", en="reversed")


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A way to lay cards: its name, and what each place stands for."""

    name: Bilingual
    positions: tuple[Bilingual, ...]


SPREADS: Mapping[str, Spread] = {
    "single": Spread(
        name=Bilingual(zh="单张牌", en="Single card"), positions=(Bilingual(zh="当下指引", en="Guidance now"),)
    ),
    "three": Spread(
        name=Bilingual(zh="时间之流", en="Past, present, future"),
        positions=(
            Bilingual(zh="过去", en="Past"),
            Bilingual(zh="现在", en="Present"),
            Bilingual(zh="未来", en="Future"),
        ),
    ),
    "relationship": Spread(
        name=Bilingual(zh="关系牌阵", en="Relationship"),
        positions=(
            Bilingual(zh="你的状态", en="You"),
            Bilingual(zh="对方的状态", en="The other"),
            Bilingual(zh="关系现状", en="The relationship now"),
            Bilingual(zh="挑战", en="Challenge"),
            Bilingual(zh="发展方向", en="Where it is heading"),
        ),
    ),
    "choice": Spread(
        name=Bilingual(zh="二选一牌阵", en="A choice of two"),
        positions=(
            Bilingual(zh="当前处境", en="Where you stand"),
            Bilingual(zh="选择A的发展", en="How option A unfolds"),
            Bilingual(zh="选择B的发展", en="How option B unfolds"),
            Bilingual(zh="选择A的结果", en="Outcome of option A"),
            Bilingual(zh="选择B的结果", en="Outcome of option B"),
        ),
    ),
    "celtic_cross": Spread(
        name=Bilingual(zh="凯尔特十字", en="Celtic Cross"),
        positions=(
            Bilingual(zh="现状", en="The present"),
            Bilingual(zh="阻碍", en="The challenge"),
            Bilingual(zh="根源", en="The root"),
            Bilingual(zh="过去", en="The recent past"),
            Bilingual(zh="目标", en="The aim"),
            Bilingual(zh="近未来", en="The near future"),
            Bilingual(zh="自我", en="Yourself"),
            Bilingual(zh="环境", en="Your surroundings"),
            Bilingual(zh="希望与恐惧", en="Hopes and fears"),
            Bilingual(zh="结果", en="The outcome"),
        ),
    ),
}


@dataclass(frozen=True, kw_only=True)
class DrawnCard:
    """A card in its place."""

    position: Bilingual
    card: Card
    reversed: bool

    @property
    def orientation(self) -> Bilingual:
        return REVERSED if self.reversed else UPRIGHT

    @property
    def keywords(self) -> Bilingual:
        return self.card.reversed if self.reversed else self.card.upright

    def row(self, locale: Locale) -> dict[str, Json]:
        return {
            "position": self.position.in_locale(locale),
            "card": self.card.name.in_locale(locale),
            "orientation": self.orientation.in_locale(locale),
            "arcana": ARCANA[self.card.suit].in_locale(locale),
            "keywords": self.keywords.in_locale(locale),
        }


@dataclass(frozen=True, kw_only=True)
class Draw:
    """Cards in their places, and the seed that draws them again."""

    spread: str
    seed: int
    allow_reversed: bool
    cards: tuple[DrawnCard, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """The words cases are found by: each card, how it lies, the two together, its suit; Chinese, then English."""
        chinese = (word for card in self.cards for word in _features(card, "zh"))
        english = (word for card in self.cards for word in _features(card, "en"))
        return tuple(dict.fromkeys((*chinese, *english)))

    def row(self, locale: Locale = "zh") -> dict[str, Json]:
        return {
            "spread": self.spread,
            "spread_name": SPREADS[self.spread].name.in_locale(locale),
            "seed": self.seed,
            "allow_reversed": self.allow_reversed,
            "cards": [card.row(locale) for card in self.cards],
            "features": list(self.features),
        }


def draw(spread: str, seed: int, *, allow_reversed: bool = True) -> Draw:
    """Shuffle the deck with `random.Random(seed)`, then lay cards from the top; a coin each says which lie reversed.

    The coins follow the shuffle, so a draw without reversed cards has the same cards.
    """
    if spread not in SPREADS:
        raise ToolError(f"There is no spread {spread!r}. Choose one of: {', '.join(SPREADS)}.")
    chance = random.Random(seed)  # noqa: S311 - cards, not secrets: a draw must come out the same again
    deck = list(DECK)
    chance.shuffle(deck)
    positions = SPREADS[spread].positions
    coins = [chance.random() < 1 / 2 for _ in positions]
    return Draw(
        spread=spread,
        seed=seed,
        allow_reversed=allow_reversed,
        cards=tuple(
            DrawnCard(position=position, card=card, reversed=allow_reversed and coin)
            for position, card, coin in zip(positions, deck, coins, strict=False)
        ),
    )


def _features(card: DrawnCard, locale: Locale) -> tuple[str, ...]:
    name, lies = card.card.name.in_locale(locale), card.orientation.in_locale(locale)
    together = f"{name}{lies}" if locale == "zh" else f"{name} {lies}"
    return name, lies, together, ARCANA[card.card.suit].in_locale(locale)
