"""Tarot cards and spreads. A seed determines the draw."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.conversation.json import Json
from recto.errors import ToolError
from recto.page.prompt.reminder import Locale

Suit = Literal["major", "wands", "cups", "swords", "pentacles"]

# Two lines for each card, in Chinese and English, in the form `name: upright keywords / reversed keywords`.
MAJOR = """
愚者：新的开始、自由、冒险 / 鲁莽、逃避、准备不足
The Fool: beginnings, freedom, a leap / recklessness, avoidance, not ready
魔术师：创造、行动力、资源 / 操纵、才能未展、空谈
The Magician: creation, initiative, resources / manipulation, unused talent, empty talk
女祭司：直觉、静默、内在智慧 / 忽视直觉、隐瞒、疏离
The High Priestess: intuition, stillness, inner wisdom / ignored intuition, secrets, withdrawal
皇后：丰盛、滋养、创造力 / 依赖、匮乏感、过度付出
The Empress: abundance, nurture, creativity / dependence, feeling of lack, giving too much
皇帝：秩序、责任、权威 / 专断、僵化、失控
The Emperor: order, responsibility, authority / domination, rigidity, loss of control
教皇：传统、指引、信念 / 教条、叛逆、盲从
The Hierophant: tradition, guidance, belief / dogma, rebellion, blind obedience
恋人：爱、选择、价值一致 / 失衡、分歧、犹豫不决
The Lovers: love, choice, shared values / imbalance, disagreement, indecision
战车：意志、前进、胜利 / 失去方向、冲动、受阻
The Chariot: willpower, advance, victory / no direction, impulsiveness, obstruction
力量：勇气、耐心、温柔的力量 / 自我怀疑、软弱、压抑
Strength: courage, patience, gentle power / self-doubt, weakness, suppression
隐士：独处、内省、寻求真理 / 孤立、封闭、迷失
The Hermit: solitude, introspection, search for truth / isolation, closing off, being lost
命运之轮：转机、循环、机遇 / 阻滞、抗拒变化、时机未到
Wheel of Fortune: turning point, cycles, chance / standstill, resistance to change, bad timing
正义：公平、因果、诚实 / 不公、推卸、偏见
Justice: fairness, cause and effect, honesty / unfairness, evasion, bias
倒吊人：换个角度、暂停、放下 / 拖延、无谓牺牲、固执
The Hanged Man: new perspective, pause, letting go / delay, needless sacrifice, stubbornness
死神：结束、转化、告别 / 抗拒结束、停滞、执着
Death: ending, transformation, farewell / refusing an end, stagnation, clinging
节制：平衡、调和、耐心 / 失衡、过度、急躁
Temperance: balance, blending, patience / imbalance, excess, haste
恶魔：束缚、欲望、执念 / 挣脱、觉察、解放
The Devil: bondage, desire, obsession / breaking free, awareness, release
高塔：突变、崩解、真相 / 延迟的改变、恐惧、侥幸避开
The Tower: sudden change, collapse, truth / delayed change, fear, narrow escape
星星：希望、疗愈、灵感 / 失望、信心不足、黯淡
The Star: hope, healing, inspiration / disappointment, lack of faith, dimness
月亮：不安、潜意识、迷雾 / 澄清、走出恐惧、真相浮现
The Moon: unease, the unconscious, fog / clearing, leaving fear behind, truth surfacing
太阳：喜悦、成功、活力 / 短暂的阴影、过度乐观、延迟的成功
The Sun: joy, success, vitality / passing shadow, too much optimism, delayed success
审判：觉醒、召唤、总结 / 自责、逃避召唤、迟疑
Judgement: awakening, calling, review / self-blame, ignored calling, hesitation
世界：完成、圆满、整合 / 未完成、拖延、缺少收尾
The World: completion, fulfilment, wholeness / unfinished, delay, loose ends
"""
WANDS = """
热情的火花、新计划、灵感 / 动力不足、延误、灵感枯竭
spark of passion, new project, inspiration / low drive, delay, no inspiration
规划、远见、抉择 / 犹豫、害怕未知、计划不周
planning, foresight, decision / hesitation, fear of the unknown, poor planning
拓展、展望、初步成果 / 受阻、失望、视野受限
expansion, outlook, first results / setback, disappointment, narrow view
庆祝、安定、归属 / 不稳定、家中不和、庆祝推迟
celebration, stability, belonging / instability, discord at home, postponed joy
竞争、冲突、磨合 / 回避冲突、和解、内耗
competition, conflict, friction / avoided conflict, truce, inner struggle
胜利、认可、自信 / 得不到认可、骄傲、失落
victory, recognition, confidence / no recognition, pride, letdown
坚守、捍卫、挑战 / 疲于应付、退让、不知所措
holding ground, defence, challenge / exhaustion, giving way, overwhelm
迅速、消息、进展 / 延误、匆忙、沟通不畅
speed, news, progress / delay, haste, crossed messages
坚韧、戒备、最后的坚持 / 疲惫、多疑、放弃
resilience, guardedness, last stand / weariness, suspicion, giving up
负担、责任、压力 / 卸下重担、分担、崩溃边缘
burden, responsibility, pressure / laying down a load, sharing, near collapse
好奇、探索、好消息 / 三分钟热度、坏消息、缺乏方向
curiosity, exploration, good news / short-lived zeal, bad news, no direction
冲劲、冒险、行动 / 冲动、急躁、虎头蛇尾
drive, adventure, action / impulse, impatience, fizzling out
自信、热情、魅力 / 嫉妒、苛求、失去自信
confidence, warmth, charm / jealousy, demands, lost confidence
领导、远见、魄力 / 专横、期望过高、冲动决策
leadership, vision, boldness / overbearing, high expectations, rash decisions
"""
CUPS = """
新的感情、敞开心扉、喜悦 / 情感压抑、空虚、爱而不得
new feeling, open heart, joy / held-back emotion, emptiness, unreturned love
相互吸引、合作、联结 / 失衡、误解、疏远
mutual attraction, partnership, bond / imbalance, misunderstanding, distance
友谊、欢聚、分享 / 流言、过度放纵、被排除在外
friendship, gathering, sharing / gossip, overindulgence, left out
倦怠、冷淡、重新审视 / 重新投入、看见机会、走出消沉
apathy, disinterest, reassessment / re-engagement, noticed chance, leaving gloom
失落、悲伤、遗憾 / 释怀、接受、重新出发
loss, grief, regret / letting go, acceptance, moving on
回忆、童真、重逢 / 困在过去、成长、离开旧地
memory, innocence, reunion / stuck in the past, growing up, leaving home
幻想、诱惑、众多选择 / 看清现实、做出选择、清醒
fantasy, temptation, many options / seeing clearly, choosing, sobriety
离开、放下、寻找更深的意义 / 害怕改变、徘徊、勉强留下
walking away, letting go, deeper search / fear of change, drifting, staying on
满足、愿望成真、安乐 / 不满足、贪心、表面的快乐
contentment, wish granted, comfort / dissatisfaction, greed, surface pleasure
家庭和乐、圆满、归属 / 家庭不和、理想破灭、疏离
family harmony, fulfilment, belonging / discord, broken ideal, estrangement
敏感、创意、情感的讯息 / 幼稚、情绪化、创意受阻
sensitivity, creative idea, a tender message / immaturity, moodiness, creative block
浪漫、追求、邀约 / 不切实际、善变、失望
romance, pursuit, invitation / unrealistic, fickle, disappointed
体贴、共情、滋养 / 情绪依赖、界限不清、过度敏感
care, empathy, nurture / emotional dependence, weak boundaries, oversensitivity
情绪成熟、包容、沉稳 / 压抑、情绪操控、冷漠
emotional maturity, tolerance, calm / suppression, manipulation, coldness
"""
SWORDS = """
清晰、真相、突破 / 混乱、误判、言语伤人
clarity, truth, breakthrough / confusion, misjudgement, hurtful words
僵局、回避、两难 / 看清真相、被迫选择、信息过载
stalemate, avoidance, dilemma / seeing the truth, forced choice, overload
心碎、伤痛、分离 / 疗愈、释放、原谅
heartbreak, pain, separation / healing, release, forgiveness
休息、恢复、静思 / 疲惫不堪、不安、被迫停下
rest, recovery, reflection / burnout, restlessness, forced stop
冲突、输赢、代价 / 和解、懊悔、放下争执
conflict, winning at a cost, defeat / making peace, remorse, dropping the fight
过渡、离开困境、平复 / 难以离开、旧事未了、阻滞
transition, leaving trouble, calming / hard to leave, unfinished business, held up
策略、隐瞒、独自行动 / 坦白、真相败露、改变策略
strategy, concealment, acting alone / confession, exposure, new approach
受困、自我设限、无助 / 重获自由、新视角、解开束缚
trapped, self-limitation, helplessness / freedom regained, new view, untying
焦虑、失眠、担忧 / 走出焦虑、寻求帮助、希望
anxiety, sleeplessness, worry / easing worry, seeking help, hope
终结、触底、背负伤痛 / 复原、重生、最坏已过
an end, rock bottom, deep hurt / recovery, rebirth, the worst is over
求知、观察、机敏 / 流言、轻率、言行不一
curiosity, watchfulness, quick wit / gossip, carelessness, words without deeds
果断、直接、迅猛 / 鲁莽、好斗、考虑不周
decisive, direct, swift / reckless, combative, ill considered
独立、理性、坦率 / 冷漠、苛刻、怨怼
independence, reason, candour / coldness, harshness, resentment
理智、公正、权威 / 专断、冷酷、滥用权力
intellect, fairness, authority / tyranny, ruthlessness, misuse of power
"""
PENTACLES = """
新的机会、务实的开端、收获 / 错失机会、规划不足、财务不稳
new opportunity, practical start, gain / missed chance, poor planning, unsteady money
平衡、灵活、兼顾 / 失衡、手忙脚乱、财务压力
balance, flexibility, juggling / imbalance, overwhelm, money stress
合作、技艺、打好基础 / 配合不佳、敷衍、缺乏认可
teamwork, skill, groundwork / poor teamwork, sloppy work, no recognition
安全感、守成、掌控 / 吝啬、放手、害怕失去
security, saving, control / miserliness, letting go, fear of loss
匮乏、困顿、被冷落 / 走出困境、获得帮助、恢复
lack, hardship, left in the cold / recovery, help found, improvement
给予、分享、公平 / 附带条件、不对等、亏欠
giving, sharing, fairness / strings attached, one-sidedness, debt
耐心、评估、等待收成 / 急于求成、付出无果、倦怠
patience, assessment, waiting for harvest / impatience, little return, fatigue
专注、精进、勤奋 / 敷衍、缺乏动力、完美主义
focus, mastery, diligence / carelessness, low motivation, perfectionism
独立、自足、享受成果 / 过度工作、依赖、物质空虚
independence, self-sufficiency, enjoying results / overwork, dependence, hollow comfort
家业、传承、长久的富足 / 家庭纷争、财务损失、短视
family wealth, legacy, lasting plenty / family dispute, financial loss, short-sightedness
学习、踏实、新的计划 / 拖延、不专心、不切实际
study, groundedness, new plan / procrastination, distraction, unrealistic aims
可靠、稳健、坚持 / 停滞、固执、乏味
reliability, steadiness, persistence / stagnation, stubbornness, tedium
务实、照顾、富足 / 忽略自己、物质焦虑、失衡
practicality, care, plenty / self-neglect, money worry, imbalance
成就、稳固、慷慨 / 贪婪、固执、唯利是图
achievement, solidity, generosity / greed, obstinacy, profit above all
"""
ARCANA: Mapping[Suit, Bilingual] = {
    "major": Bilingual(zh="大阿尔卡那", en="Major Arcana"),
    "wands": Bilingual(zh="权杖", en="Wands"),
    "cups": Bilingual(zh="圣杯", en="Cups"),
    "swords": Bilingual(zh="宝剑", en="Swords"),
    "pentacles": Bilingual(zh="星币", en="Pentacles"),
}
SUITS: Mapping[Suit, str] = {"wands": WANDS, "cups": CUPS, "swords": SWORDS, "pentacles": PENTACLES}
RANKS = (
    Bilingual(zh="首牌", en="Ace"),
    Bilingual(zh="二", en="Two"),
    Bilingual(zh="三", en="Three"),
    Bilingual(zh="四", en="Four"),
    Bilingual(zh="五", en="Five"),
    Bilingual(zh="六", en="Six"),
    Bilingual(zh="七", en="Seven"),
    Bilingual(zh="八", en="Eight"),
    Bilingual(zh="九", en="Nine"),
    Bilingual(zh="十", en="Ten"),
    Bilingual(zh="侍从", en="Page"),
    Bilingual(zh="骑士", en="Knight"),
    Bilingual(zh="王后", en="Queen"),
    Bilingual(zh="国王", en="King"),
)


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card. `number` is 0-21 in the major arcana and 1-14 in a suit."""

    suit: Suit
    number: int
    name: Bilingual
    upright: Bilingual
    reversed: Bilingual


def _cards() -> Iterator[Card]:
    lines = MAJOR.strip().splitlines()
    pairs = zip(lines[::2], lines[1::2], strict=True)
    for number, (chinese, english) in enumerate(pairs):
        (name, words), (english_name, english_words) = chinese.split("：", 1), english.split(": ", 1)
        yield _card("major", number, Bilingual(zh=name, en=english_name), words, english_words)
    for suit, text in SUITS.items():
        lines, of = text.strip().splitlines(), ARCANA[suit]
        for number, (rank, words, english_words) in enumerate(zip(RANKS, lines[::2], lines[1::2], strict=True), 1):
            name = Bilingual(zh=of.zh + rank.zh, en=f"{rank.en} of {of.en}")
            yield _card(suit, number, name, words, english_words)


def _card(suit: Suit, number: int, name: Bilingual, chinese: str, english: str) -> Card:
    (upright, reversed_text), (english_upright, english_turned) = chinese.split(" / "), english.split(" / ")
    return Card(
        suit=suit,
        number=number,
        name=name,
        upright=Bilingual(zh=upright, en=english_upright),
        reversed=Bilingual(zh=reversed_text, en=english_turned),
    )


DECK: tuple[Card, ...] = tuple(_cards())


UPRIGHT, REVERSED = Bilingual(zh="正位", en="upright"), Bilingual(zh="逆位", en="reversed")


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A layout of cards: its name and the meaning of each position."""

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
    """A card in its position."""

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
    """Cards in their positions, and the seed that reproduces them."""

    spread: str
    seed: int
    allow_reversed: bool
    cards: tuple[DrawnCard, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """Tags that select cases, in Chinese, then in English: each card, its orientation, both together, its suit."""
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
    """Shuffle the deck with `random.Random(seed)`, lay cards from the top, then flip a coin for each to reverse it.

    The coins are flipped after the shuffle, so a draw without reversed cards has the same cards.
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
