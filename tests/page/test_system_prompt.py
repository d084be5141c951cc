"""S9, S11, S1: the system prompt section by section, and what its budget takes from it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.locale import language
from recto.page.prompt.system_prompt import Case, Datum, Prompt, PromptCut, SystemPrompt, render, system_prompt
from recto.page.text.tokens import OFFLINE, TokenCounter
from tests.page.counters import WordCounter

WORDS = WordCounter()

# The persona of the seed's first phase: one text, headings of its own included.
VIBE = """你是 Vibe，一个生命对话者。

## 你的能力
- 深度倾听和情绪感知
- 引导用户探索自我
- 根据需要激活专业技能

## 工具使用
当用户需要专业分析时，使用 use_skill 工具激活对应技能。"""
SELECT = Prompt(title="Vibe - 生命对话者", identity=VIBE)
EXECUTE = Prompt(
    title="八字命理 - 资深命理师",
    identity="你是一位资深命理师。",
    tone="温暖、耐心。",
    sop="1. 先确认出生信息。\n2. 再排盘。",
    cases=(
        Case(id="c1", name="身弱财旺", content="先扶身，再论财。"),
        Case(id="c2", name="伤官见官", content="以印化之。"),
    ),
    data=(Datum(title="出生信息", text='{"date": "1990-01-01"}'), Datum(title="命盘数据", text="甲子 乙丑 丙寅 丁卯")),
    rules="排盘只用 compute_bazi。",
)
EXECUTE_ZH = """# 八字命理 - 资深命理师

你是一位资深命理师。

## 语气
温暖、耐心。

## SOP 执行规则
1. 先确认出生信息。
2. 再排盘。

## 相关案例
### 身弱财旺
先扶身，再论财。

### 伤官见官
以印化之。

## 用户数据
### 出生信息
{"date": "1990-01-01"}

### 命盘数据
甲子 乙丑 丙寅 丁卯

## 工具调用规则
排盘只用 compute_bazi。"""
HEADINGS_IN_ENGLISH = {
    "## 语气": "## Tone",
    "## SOP 执行规则": "## SOP",
    "## 相关案例": "## Related cases",
    "## 用户数据": "## User data",
    "## 工具调用规则": "## Tool rules",
}


# The sections


def test_S9_while_a_skill_is_chosen_the_prompt_is_the_lean_persona_alone():
    assert render(SELECT, "zh") == f"# Vibe - 生命对话者\n\n{VIBE}"


def test_S9_while_a_skill_is_at_work_the_prompt_has_all_sections_in_order():
    assert render(EXECUTE, "zh") == EXECUTE_ZH


def test_S9_an_english_agent_gets_english_headings():
    expected = EXECUTE_ZH
    for zh, en in HEADINGS_IN_ENGLISH.items():
        expected = expected.replace(f"{zh}\n", f"{en}\n")
    assert render(EXECUTE, "en") == expected


@pytest.mark.parametrize(
    ("locale", "wording"),
    [("zh", "zh"), ("zh-CN", "zh"), ("", "zh"), ("de", "zh"), ("en", "en"), ("en-GB", "en"), ("EN_us", "en")],
)
def test_S9_the_wording_is_chinese_unless_the_locale_is_english(locale: str, wording: str):
    assert language(locale) == wording


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (Prompt(identity="I am."), "I am."),
        (Prompt(title="T", identity=""), "# T"),
        (Prompt(identity="I am.", sop="One."), "I am.\n\n## SOP 执行规则\nOne."),
        (Prompt(identity="I am.", data=(Datum(title="D", text="x"),)), "I am.\n\n## 用户数据\n### D\nx"),
        (Prompt(title="T", identity="I am.", rules="Ask."), "# T\n\nI am.\n\n## 工具调用规则\nAsk."),
    ],
)
def test_S9_a_section_with_nothing_in_it_is_absent(prompt: Prompt, text: str):
    assert render(prompt, "zh") == text


def test_S11_the_voice_changes_the_tone_section_only():
    cool = replace(EXECUTE, tone="简洁、直接。")
    assert render(cool, "zh") == EXECUTE_ZH.replace("## 语气\n温暖、耐心。\n", "## 语气\n简洁、直接。\n")
    assert render(replace(EXECUTE, tone=""), "zh") == EXECUTE_ZH.replace("## 语气\n温暖、耐心。\n\n", "")


# The budget

LARGE = Prompt(
    identity="I am an expert.",
    tone="Be warm.",
    sop="Ask for the date first.",
    cases=(Case(id="a", name="A", content="a " * 9 + "a"), Case(id="b", name="B", content="b " * 4 + "b")),
    data=(Datum(title="Birth", text="1990-01-01 12:00 here"), Datum(title="Life", text="life " * 39 + "life")),
    rules="Never guess.",
)
# Identity 4, tone 2 + 2, SOP 2 + 5, cases 3 + 2 + 10 + 2 + 5, data 3 + 2 + 3 + 2 + 40, rules 3 + 2.
FEWER = "over the budget of {} tokens; cases go first"
SHORTER = "shortened to keep the budget of {} tokens"
NOTHING = "nothing of it fits into the budget of {} tokens"
REST = """I am an expert.

## Tone
Be warm.

## SOP
Ask for the date first.

"""
RULES = """

## Tool rules
Never guess."""


def in_english(budget: int | None, prompt: Prompt = LARGE, counter: TokenCounter = WORDS) -> SystemPrompt:
    return system_prompt(prompt, "en", budget, counter)


def test_S1_then_the_last_data_is_shortened_with_a_mark():
    # Without cases it has 70 tokens: 10 too many, and 8 more are given up for the seams.
    result = in_english(60)
    assert result.text == (
        f"{REST}## User data\n### Birth\n1990-01-01 12:00 here\n\n### Life\n{'life ' * 19}\n[... cut ...]{RULES}"
    )
    assert result.changes[2:] == (PromptCut("data Life", "cut", 40, 22, SHORTER.format(60)),)
    assert result.over is None
    assert f"{'life ' * 20}\n[... 已截断 ...]\n\n## 工具" in system_prompt(LARGE, "zh", 60, WORDS).text


def test_S1_data_before_the_last_is_shortened_only_when_that_is_not_enough_and_leaves_no_heading():
    # 28 without the last, which has nothing more to give: the one before it gives too.
    result = in_english(28)
    assert result.text == f"{REST}## User data\n### Birth\n1990-01-01 12:00 here{RULES}"
    assert result.changes[2:] == (PromptCut("data Life", "dropped", 40, 0, NOTHING.format(28)),)
    result = in_english(27)
    assert result.text == f"{REST.strip()}{RULES}"
    assert result.changes[2:] == (
        PromptCut("data Life", "dropped", 40, 0, NOTHING.format(27)),
        PromptCut("data Birth", "dropped", 3, 0, NOTHING.format(27)),
    )


def test_S1_a_budget_that_cannot_be_kept_is_told_and_identity_sop_and_rules_stay_whole():
    result = in_english(10)
    assert result.text == f"{REST.strip()}{RULES}"
    assert result.over == "20 tokens, over the budget of 10: identity, SOP and tools are never cut"


# Whatever the prompt

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ("", " ", "one two three", "字" * 40, "word " * 60, "a\n\nb", "<|endoftext|>")
)
prompts = st.builds(
    Prompt,
    identity=words,
    title=words,
    tone=words,
    sop=words,
    cases=st.lists(st.builds(Case, id=st.sampled_from("ab"), name=words, content=words), max_size=3).map(tuple),
    data=st.lists(st.builds(Datum, title=words, text=words), max_size=3).map(tuple),
    rules=words,
)
counters = st.sampled_from((OFFLINE, WORDS))
locales = st.sampled_from(("zh", "en"))
budgets = st.integers(0, 150)


@given(prompts, locales, budgets, counters)
def test_S1_a_prompt_is_within_its_budget_or_says_that_it_is_not(
    prompt: Prompt, locale: str, budget: int, counter: TokenCounter
):
    result = system_prompt(prompt, locale, budget, counter)
    tokens = counter.count((result.text,))[0]
    over = f"{tokens} tokens, over the budget of {budget}: identity, SOP and tools are never cut"
    assert result.over == (None if tokens <= budget else over)


@given(prompts, locales, budgets, counters)
def test_S1_what_is_never_cut_is_whole_whatever_the_budget(
    prompt: Prompt, locale: str, budget: int, counter: TokenCounter
):
    text = system_prompt(prompt, locale, budget, counter).text
    rest = render(replace(prompt, cases=(), data=(), rules=""), locale)
    rules = render(Prompt(identity="", rules=prompt.rules), locale)
    assert text.startswith(rest)
    assert text.endswith(rules)


@given(prompts, locales, budgets, counters)
def test_S1_cases_go_from_the_last_and_data_only_after_them(
    prompt: Prompt, locale: str, budget: int, counter: TokenCounter
):
    changes = system_prompt(prompt, locale, budget, counter).changes
    removed = [f"case {case.id}" for case in reversed(prompt.cases)]
    short = [f"data {datum.title}" for datum in reversed(prompt.data)]
    dropped = len([change for change in changes if change.reason == FEWER.format(budget)])
    assert {change.decision for change in changes[:dropped]} <= {"dropped"}
    assert [change.source for change in changes[:dropped]] == removed[:dropped]
    assert {change.source for change in changes[dropped:]} <= set(short)
    assert dropped in (len(prompt.cases), len(changes))


@given(prompts, locales, budgets, counters)
def test_S1_every_change_says_what_it_saved(prompt: Prompt, locale: str, budget: int, counter: TokenCounter):
    for change in system_prompt(prompt, locale, budget, counter).changes:
        of_data = SHORTER if change.decision == "cut" else NOTHING
        assert change.reason == (of_data if change.source.startswith("data ") else FEWER).format(budget)
        if change.decision == "cut":
            assert change.tokens_after < change.tokens_before
        else:
            assert change.tokens_after == 0


@given(prompts, locales, counters)
def test_S1_without_a_budget_nothing_changes(prompt: Prompt, locale: str, counter: TokenCounter):
    assert system_prompt(prompt, locale, None, counter) == SystemPrompt(text=render(prompt, locale))
