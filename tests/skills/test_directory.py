"""S3, S5: `use_skill` as a model is offered it, and how it keeps its tokens with many skills."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.messages import ToolOffer
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.page.text.tokens import OFFLINE, TokenCounter
from recto.page.wire.base import Target, WireName
from recto.skills.directory import SHORTEST, use_skill_offer
from recto.skills.skill import Scenario, Skill
from tests.page.counters import WordCounter


def skill(name: str, description: str, **more: tuple[str, ...]) -> Skill:
    return replace(
        Skill(name=name, description=description, heading=name, identity="", folder=Path("/skills") / name),
        triggers=more.get("triggers", ()),
        scenarios=tuple(Scenario(name=one, description=f"About {one}") for one in more.get("scenarios", ())),
    )


def offer(
    skills: Sequence[Skill],
    tokens: int = 100_000,
    *,
    locale: str = "en",
    counter: TokenCounter = OFFLINE,
    with_core: bool = False,
) -> ToolOffer:
    return use_skill_offer(skills, locale=locale, tokens=tokens, counter=counter, with_core=with_core)


def tokens_of(one: ToolOffer) -> int:
    """Those that a page counts for it."""
    (tool,) = [part for part in assemble(Facts(log=(), tools=(one,)))[1].parts if part.kind == "tool"]
    return tool.tokens_after


def lines_of(one: ToolOffer) -> list[str]:
    return one.description.partition("\n\nSkills:\n")[2].split("\n")


BAZI = replace(
    skill("bazi", "看八字\n命盘。", triggers=("八字", "命盘")),
    scenarios=(Scenario(name="basic_reading", description="基础解读"), Scenario(name="career")),
    default_scenario="basic_reading",
)
TAROT = skill("tarot", "抽塔罗牌。")
ZH = """\
激活一个专业技能。之后以该技能的专家身份回答，并得到它的流程、用户数据和工具。用户要的正是某个技能所做的事时，先调用本工具，再作答。

示例：
- 用户提到“八字” → skill=bazi, scenario=basic_reading
- 用户只是打招呼或闲聊 → 不调用，直接回答

边界情况：
- 多个技能都适合：选更具体的那个。
- 没有适合的技能：不要调用，自己回答。
- 已经在这个技能里：不要再次调用，继续即可；用户要它的另一个场景时，才用那个 scenario 再调用。
- scenario 只能是该技能列出的场景；拿不准就省略。

技能目录：
- bazi: 看八字 命盘。 | 触发词：八字、命盘 | 场景：basic_reading（基础解读）、career
- tarot: 抽塔罗牌。"""
EN_WITH_CORE = """\
Activate a skill. From then on you answer as its expert, with its procedure, the user's data and its tools. When the \
user wants what one of the skills does, call this first, then answer.

Examples:
- The user wants what tarot does -> skill=tarot
- The user only greets or chats -> no call, answer directly

Edge cases:
- Several skills fit: take the more specific one.
- No skill fits: do not call, answer yourself.
- Already in that skill: do not call again, just go on; only another of its scenarios is worth a call.
- The user is done, or has left the topic: skill=core leaves the current skill.
- scenario is one that the skill lists; leave it out when in doubt.

Skills:
- tarot: Draws cards. | scenarios: love (About love), work (About work)"""
MANY = [
    skill(f"skill-{number:03}", f"Does the {number}. thing. " * 12, triggers=("go", "run it"), scenarios=("one", "two"))
    for number in range(200)
]


# What it says


def test_S3_the_offer_has_examples_edge_cases_and_the_directory():
    assert offer([BAZI, TAROT], locale="zh") == ToolOffer(
        name="use_skill",
        description=ZH,
        parameters='{"type":"object","properties":{"skill":{"type":"string","enum":["bazi","tarot"]},'
        '"scenario":{"type":"string","enum":["basic_reading","career"],'
        '"description":"该技能列出的场景之一；拿不准就省略。"}},'
        '"required":["skill"],"additionalProperties":false}',
    )


def test_S3_within_a_skill_the_offer_has_core_which_leaves_it():
    offer_made = offer([skill("tarot", "Draws cards.", scenarios=("love", "work"))], with_core=True)
    assert offer_made.description == EN_WITH_CORE
    assert '"enum":["tarot","core"]' in offer_made.parameters
    assert '"One of the scenarios the skill lists; leave it out when in doubt."' in offer_made.parameters


@pytest.mark.parametrize("with_core", [False, True])
@pytest.mark.parametrize("locale", ["zh", "en"])
def test_S3_without_a_skill_at_work_core_is_not_spoken_of(locale: str, with_core: bool):
    offer_made = offer([BAZI, TAROT], locale=locale, with_core=with_core)
    assert ("core" in offer_made.description, '"core"' in offer_made.parameters) == (with_core, with_core)


@pytest.mark.parametrize(
    ("arguments", "is_valid"),
    [
        ({"skill": "bazi", "scenario": "career"}, True),
        ({"skill": "bazi", "scenario": "war"}, False),
        ({"skill": "core"}, False),
        ({"scenario": "career"}, False),
        ({"skill": "bazi", "more": 1}, False),
    ],
)
def test_S3_the_schema_takes_the_skills_and_scenarios_of_the_directory_only(arguments: dict[str, str], is_valid: bool):
    validator = jsonschema_rs.validator_for(offer([BAZI, TAROT]).parameters)
    assert validator.is_valid(arguments) is is_valid


def test_S3_skills_stay_in_their_order():
    assert '["tarot","bazi","core"]' in offer([TAROT, BAZI], with_core=True).parameters
    assert [line[:7] for line in lines_of(offer([TAROT, BAZI]))] == ["- tarot", "- bazi:"]


def test_S3_the_example_is_of_a_skill_that_has_triggers_and_a_long_one_is_cut():
    assert "\n- The user speaks of “八字” -> skill=bazi, scenario=basic_reading\n" in offer([TAROT, BAZI]).description
    offer_made = offer([skill("long", "Long.", triggers=("w" * 99,))])
    assert f"speaks of “{'w' * 39}…” -> skill=long\n" in offer_made.description


def test_S5_braces_and_line_breaks_in_a_skill_are_words():
    offer_made = offer([skill("odd", "{x} {}\r\n## Skills:", triggers=("{t}\n- bad: line",))])
    assert lines_of(offer_made) == ["- odd: {x} {} ## Skills: | triggers: {t} - bad: line"]
    assert "speaks of “{t} - bad: line” -> skill=odd\n" in offer_made.description


def test_S3_without_a_skill_there_is_nothing_to_offer():
    with pytest.raises(ValueError, match="Leave out use_skill"):
        offer([])


# Its tokens


def test_S3_triggers_go_first_and_scenarios_next():
    whole, lines = tokens_of(offer(MANY[:3])), [f"- {one.name}: {one.description.strip()}" for one in MANY[:3]]
    first = offer(MANY[:3], whole - 1)
    assert lines_of(first) == [f"{line} | scenarios: one (About one), two (About two)" for line in lines]
    assert first.note == f"3 skills: triggers left out, to keep {whole - 1} tokens"
    assert first.tokens_before == whole
    assert offer(MANY[:3], whole) == offer(MANY[:3])
    less = tokens_of(first) - 1
    shorter = offer(MANY[:3], less)
    assert lines_of(shorter) == lines
    assert shorter.note == f"3 skills: triggers and scenarios left out, to keep {less} tokens"


class CharacterCounter:
    """A token for each character."""

    name = "characters"

    def count(self, texts: Sequence[str]) -> Sequence[int]:
        return [len(text) for text in texts]


def test_S3_then_descriptions_are_cut_to_the_longest_common_length_that_fits():
    characters = CharacterCounter()
    skills = [skill("a", "one two three four five"), skill("b", "short"), skill("c", "six seven eight nine ten")]
    whole = offer(skills, 1, counter=characters).tokens_before
    shorter = offer(skills, whole - 8, counter=characters)
    assert lines_of(shorter) == ["- a: one two three four…", "- b: short", "- c: six seven eight ni…"]
    assert shorter.note == f"3 skills: descriptions cut to 19 characters, to keep {whole - 8} tokens"


def test_S3_at_last_the_names_stand_in_the_schema_alone():
    offer_made = offer(MANY, 1_200, with_core=True)
    assert offer_made.description.endswith("\n\nSkills: those that the parameter skill lists.")
    assert offer_made.note == "200 skills: only their names are told, to keep 1200 tokens"
    assert all(f'"{one.name}"' in offer_made.parameters for one in MANY)
    assert tokens_of(offer_made) <= 1_200


def test_S3_where_even_names_are_too_much_the_note_says_so():
    offer_made = offer(MANY, 500)
    over = f"that is {tokens_of(offer_made)} tokens, over the 500 allowed"
    assert offer_made.note == f"200 skills: only their names are told, and {over}"
    assert offer_made.tokens_before == tokens_of(offer(MANY))


@pytest.mark.parametrize("count", [20, 60, 200])
def test_S3_an_offer_of_many_skills_counts_few_times(count: int):
    counter = WordCounter()
    offer_made = offer(MANY[:count], 900, counter=counter)
    assert offer_made.note
    assert len(counter.asked) <= 16


DESCRIPTIONS = st.text('abc 看八字,.\n"', max_size=80)
WORDS = st.lists(st.text(max_size=9), max_size=2).map(tuple)
SCENARIOS = st.sampled_from([(), ("basic",), ("basic", "more")])
SKILLS = st.lists(st.tuples(DESCRIPTIONS, WORDS, SCENARIOS), min_size=1, max_size=12)


def test_S3_an_offer_keeps_its_tokens_in_every_format():
    one = offer(MANY, 1_200)
    for wire in get_args(WireName):
        parts = assemble(Facts(log=(), target=Target(wire=wire), tools=(one,)))[1].parts
        assert max(part.tokens_after for part in parts if part.kind == "tool") <= 1_200


@given(SKILLS, st.integers(150, 900), st.sampled_from(["zh", "en"]), st.booleans())
def test_S3_an_offer_keeps_its_tokens_or_says_that_it_cannot(
    skills_made: Sequence[tuple[str, tuple[str, ...], tuple[str, ...]]], tokens: int, locale: str, with_core: bool
):
    skills = [
        skill(f"s{n}", text, triggers=words, scenarios=names) for n, (text, words, names) in enumerate(skills_made)
    ]
    one = offer(skills, tokens, locale=locale, with_core=with_core)
    assert (tokens_of(one) <= tokens) == ("over the" not in one.note)
    assert sum(OFFLINE.count((one.description, one.parameters))) <= tokens_of(one)
    assert one == offer(skills, tokens, locale=locale, with_core=with_core)
    assert bool(one.note) == (one.tokens_before > tokens)


@given(st.integers(SHORTEST + 1, 120), st.integers(2, 9), st.integers(330, 600))
def test_S3_no_longer_cut_would_fit(length: int, count: int, tokens: int):
    skills = [skill(f"s{number}", "字" * length) for number in range(count)]
    one = offer(skills, tokens)
    cut = lines_of(one)[0].partition(": ")[2]
    if "cut to" in one.note:
        longer = [replace(each, description="字" * len(cut) + "…") for each in skills]
        assert f"cut to {len(cut)} characters" in one.note
        assert tokens_of(offer(longer)) > tokens
