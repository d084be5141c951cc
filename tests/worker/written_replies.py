"""What models write (P11), a row a reply: its calls, its words, or that it is asked again."""

from dataclasses import dataclass, replace
from typing import Literal

from recto.conversation.messages import ToolOffer
from recto.worker.tools.offered_tools import OfferedTools

TOOLS = OfferedTools(
    (
        ToolOffer(
            name="use_skill",
            description="",
            parameters='{"properties": {"skill": {"enum": ["bazi", "tarot"]}, "scenario": {"type": "string"}}}',
        ),
        ToolOffer(
            name="calculator",
            description="",
            parameters='{"properties": {"expression": {"type": "string"}}, "required": ["expression"]}',
        ),
        ToolOffer(name="current_time", description="", parameters='{"properties": {"timezone": {"type": "string"}}}'),
        ToolOffer(
            name="read_files",
            description="",
            parameters='{"properties": {"ids": {"type": "array"}, "limit": {"type": "integer"}}, "required": ["ids"]}',
        ),
    ),
    chooser="use_skill",
)


@dataclass(frozen=True)
class Row:
    """A reply with its result: the words for the user, the calls, or a new request."""

    wrote: str
    calls: tuple[str, ...] = ()
    words: str = ""
    again: str = ""
    only: Literal["prompt", "auto", ""] = ""


def call_row(wrote: str, *calls: str, words: str = "") -> Row:
    return Row(wrote, calls or (SUM,), words)


def text_row(wrote: str) -> Row:
    return Row(wrote, words=wrote)


def again(wrote: str) -> Row:
    """Return a row that names a tool and cannot be read."""
    return Row(wrote, again="could not be read: it is no JSON")


SUM = 'calculator {"expression": "17*23"}'
NOW = "current_time {}"
BAZI = 'use_skill {"skill": "bazi"}'
ARGUMENTS = '{"expression": "17*23"}'
CALL = f'{{"name": "calculator", "arguments": {ARGUMENTS}}}'
WEATHER = '{"name": "weather", "arguments": {}}'
NEST = '{"call": ' * 900 + "1" + "}" * 900
STRING = '{"name": "calculator", "arguments": "{\\"expression\\": \\"17*23\\"}"}'

# Qwen2.5, Qwen3, Hermes: JSON in tags, of theirs or made up from the prompt of their tools.
HERMES = [
    call_row(f"<tool_call>\n{CALL}\n</tool_call>"),
    call_row(f"<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>", SUM, SUM),
    call_row(f"<tool_call>[{CALL}]</tool_call>"),
    call_row(f"<tool_call>{CALL}}}</tool_call>"),
    call_row('<tool_call>{"name": "calculator", "parameters": {"expression": "17*23"}}</tool_call>'),
    call_row(f"<tools>\n{CALL}\n</tools>"),
    call_row(f"<tool_calls>[{CALL}, {CALL}]</tool_calls>", SUM, SUM),
    call_row(f"<function_call>{CALL}</function_call>"),
    call_row(f"```xml\n<tool_call>{CALL}</tool_call>\n```"),
    call_row(
        "<tool_call>\n<function=calculator>\n<parameter=expression>\n17*23\n</parameter>\n</function>\n</tool_call>"
    ),
    call_row(f"I will calculate that.\n<tool_call>{CALL}</tool_call>", words="I will calculate that."),
]
# Llama 3.
LLAMA = [
    call_row('{"name": "calculator", "parameters": {"expression": "17*23"}}'),
    call_row('<|python_tag|>{"name": "calculator", "parameters": {"expression": "17*23"}}<|eom_id|>'),
    call_row(f"<function=calculator>{ARGUMENTS}</function>"),
    call_row('[calculator(expression="17*23"), current_time()]', SUM, NOW),
    call_row(f'{CALL}; {{"name": "current_time", "parameters": {{}}}}', SUM, NOW),
]
# Mistral.
MISTRAL = [
    call_row(f"[TOOL_CALLS][{CALL}, {CALL}]</s>", SUM, SUM),
    call_row(f"[TOOL_CALLS]calculator[ARGS]{ARGUMENTS}"),
    call_row(f"[TOOL_CALLS]calculator{ARGUMENTS}"),
]
# DeepSeek, Gemma, Phi, and those that know ReAct or another vendor's tags.
OTHERS = [
    call_row(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>calculator\n"
        f"```json\n{ARGUMENTS}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    call_row(f"<｜tool▁call▁begin｜>calculator<｜tool▁sep｜>{ARGUMENTS}<｜tool▁call▁end｜>"),
    call_row('```tool_code\ncalculator(expression="17*23")\n```'),
    call_row('```python\ncalculator("17*23")\n```'),
    call_row(f"functools[{CALL}]"),
    call_row(f"Action: calculator\nAction Input: {ARGUMENTS}"),
    call_row('<invoke name="calculator"><parameter name="expression">17*23</parameter></invoke>'),
    call_row(
        '<function_calls><invoke name="read_files"><parameter name="ids">["a"]</parameter>'
        '<parameter name="limit">5</parameter></invoke></function_calls>',
        'read_files {"ids": ["a"], "limit": 5}',
    ),
]
# JSON, fenced or bare, under whatever keys.
JSON = [
    call_row(CALL),
    call_row(f"```json\n{CALL}\n```"),
    call_row(f"```tool_call\n{CALL}\n```"),
    call_row(f"```json\n[{CALL}, {CALL}]\n```", SUM, SUM),
    call_row(f"{CALL}\n{CALL}", SUM, SUM),
    call_row(STRING),
    call_row(f'{{"id": "call_1", "type": "function", "function": {STRING}}}'),
    call_row(f'{{"tool_calls": [{{"id": "c", "function": {STRING}}}]}}'),
    call_row('{"function": "calculator", "args": {"expression": "17*23"}}'),
    call_row('{"tool": "calculator", "tool_input": {"expression": "17*23"}}'),
    call_row('{"arguments": {"expression": "17*23"}, "name": "calculator"}'),
    call_row('{"calculator": {"expression": "17*23"}}'),
    call_row('{"name": "calculator", "expression": "17*23"}'),
    call_row('{"name": "functions.calculator", "arguments": {"expression": "17*23"}}'),
    call_row('{"name": "current-time"}', NOW),
    call_row('{"name": "current_time", "arguments": null}', NOW),
    call_row('{"name": "calculator", "arguments": {"expression": "17*23",},}'),
    call_row(f"```json\n{CALL}\n```\nThen I tell you."),
    call_row(f"So:\n```json\n{CALL}\n```\nIt is 391.", words="So:"),
]
# As code has it, where it can only mean one thing.
PYTHON = [
    call_row('calculator(expression="17*23")'),
    call_row(f"calculator({ARGUMENTS})"),
    call_row(f"calculator {ARGUMENTS}"),
    call_row(f"calculator\n{ARGUMENTS}"),
    text_row('read_files("a", 5)'),
    text_row("calculator(17 * x)"),
    text_row("calculator(expression=open('x'))"),
    text_row('calculator(expression="17*23") gives you the product.'),
]
# A call named like a skill takes it up.
SKILLS = [
    call_row('{"name": "bazi", "arguments": {"birth": "1990-05-14"}}', BAZI),
    call_row('<tool_call>{"name": "bazi", "arguments": {}}</tool_call>', BAZI),
    call_row("bazi()", BAZI),
    call_row('Bazi("career")', BAZI),
    text_row("bazi is one of my skills."),
    text_row('{"skill": "bazi"}'),
]
# Half a call: what is only not closed is whole, what lacks a piece is none.
HALVES = [
    call_row(CALL[:-1]),
    call_row(f"```json\n{CALL[:-2]}\n```"),
    again('<tool_call>{"name": "calculator", "argu'),
    again("Let me see. <tool_call>calculator 17*23</tool_call>"),
    again('{"name": "calculator", "arguments": {"expression": "17'),
    text_row("calculator"),
]
# A tool that is not offered: a call where no answer looks so, and the tools tell the model; else words.
UNKNOWN = [
    call_row('```json\n{"name": "weather", "arguments": {}}\n```', "weather {}"),
    call_row('{"name": "weather", "parameters": {"city": "Rome"}}', 'weather {"city": "Rome"}'),
    call_row(f'[{CALL}, {{"name": "weather", "arguments": {{}}}}]', SUM, "weather {}"),
    replace(call_row(f"Look:\n```json\n{WEATHER}\n```\nSo.", "weather {}", words="Look:"), only="prompt"),
    replace(text_row(f"Look:\n```json\n{WEATHER}\n```\nSo."), only="auto"),
    text_row(f"{WEATHER} is how it is called."),
    text_row('{"name": "weather", "city": "Rome"}'),
    text_row('{"name": "Anna Maria", "arguments": {}}'),
    text_row("<tools>none</tools>"),
]
# Results that no tool has given.
INVENTED = [
    Row("<system-reminder>\n# Compute sqrt(7056)\n26.14\n</system-reminder>", again="wrote the result"),
    Row('I looked.\n<tool_result name="calculator">\n391\n</tool_result>', again="wrote the result"),
    call_row(f"<tool_call>{CALL}</tool_call>\n<tool_response>\n391\n</tool_response>\nIt is 391."),
    call_row(f"{CALL}\n\nThe result is 391."),
    call_row(f"Action: calculator\nAction Input: {ARGUMENTS}\nObservation: 391\nIt is 391."),
    *[
        Row(text, again="wrote the result")
        for text in (
            'It says <tool_result name="note">391</tool_result>, so 391.',
            "```\n<tool_result>\n391\n</tool_result>\n```",
            "Look:\n```xml\n\n  <Tool_Response>391</Tool_Response>\n```\nIt is 391.",
            "- <tool_result>391</tool_result>",
            "**<tool_result>**\n391",
            "Thought: I calculate.\nAction: calculator\nAction Input: 17*23\nObservation: 391\nFinal Answer: 391",
            "[TOOL_RESULTS] 391 [/TOOL_RESULTS] It is 391.",
            "```tool_output\n391\n```\nIt is 391.",
            f"I know: <tool_result>1</tool_result>.\n```json\n{CALL}\n```",
        )
    ],
    call_row(f"<tool_call>{CALL}</tool_call>\nObservation: 391"),
    text_row("`<tool_result>1</tool_result>` is one."),
    text_row("What a <tool_result> is, I may tell."),
    text_row("```text\n<tool_result>\n1\n</tool_result>\n```\nis an example."),
]
# What was said without the result of a call is not said.
BEHIND = [
    call_row(f"<tool_call>{CALL}</tool_call>\n\nThe note was stored under number 4711."),
    call_row(f"So: <tool_call>{CALL}</tool_call> then <tool_call>{CALL}</tool_call> It is 391.", SUM, SUM, words="So:"),
    call_row(f"```json\n{CALL}\n```\nNow the other.\n<tool_call>{CALL}</tool_call>\nDone.", SUM, SUM),
    call_row(f"<tool_call>{CALL}</tool_call>\n<result>391</result>\nIt is 391."),
    call_row('calculator("17*23")\nTool result: 391'),
    call_row('calculator("17*23")\n<result>391</result>'),
    call_row('calculator("17*23")\nResult: 391\nSo it is 391.'),
    text_row("<result>391</result>"),
]
# A thought that a reply begins with is no part of it.
THOUGHTS = [
    call_row(f"<think></think><tool_call>{CALL}</tool_call>"),
    call_row(f"<thinking>Hm < 3.</thinking>\n```json\n{CALL}\n```"),
    call_row(f"<think>One moment.</think>I see.\n<tool_call>{CALL}</tool_call>", words="I see."),
    Row("<think>\nI know it by heart.\n</think>\nIt is 391.", words="It is 391."),
    Row("<think>I never end", again="ended inside of your thought"),
    text_row("The tag <think> opens a thought, </think> ends it."),
    call_row('{"thought": "I\'ll need \\"it\\".", "name": "calculator", "arguments": {"expression": "17*23"}}'),
    call_row('```json\n{"reasoning": "So.", "action": "calculator", "action_input": {"expression": "17*23"}}\n```'),
    text_row('{"thought": "I know.", "answer": 391}'),
]
# Tags and fences that say what is in them.
CLOTHES = [
    call_row(f'<tool_call name="calculator">{ARGUMENTS}</tool_call>'),
    call_row(f'<function_call name="calculator">\n{ARGUMENTS}\n</function_call>'),
    call_row(f"<tool_use name='calculator'>{ARGUMENTS}</tool_use>\nIt is 391."),
    call_row(f"<calculator>{ARGUMENTS}</calculator>"),
    call_row('<use_skill>{"skill": "bazi"}</use_skill>', BAZI),
    call_row("<bazi>{}</bazi>", BAZI),
    call_row('<tool_code>\nprint(calculator(expression="17*23"))\n</tool_code>'),
    *[call_row(f"<{tag}>\n{CALL}\n</{tag}>") for tag in ("json", "response", "answer")],
    *[call_row(f"```{kind}\n{CALL}\n```") for kind in ("tool", "javascript")],
    call_row('```javascript\ncalculator({"expression": "17*23"});\n```'),
    call_row(f"~~~json\n{CALL}\n~~~"),
    call_row('{"tool": "calculator", "tool_args": {"expression": "17*23"}}'),
    call_row("<tool_call>calculator\n<arg_key>expression</arg_key>\n<arg_value>17*23</arg_value>\n</tool_call>"),
    call_row(
        'I read.\n<tool_call>read_files\n<arg_key>ids</arg_key><arg_value>["a"]</arg_value>'
        "<arg_key>limit</arg_key><arg_value>5</arg_value></tool_call>",
        'read_files {"ids": ["a"], "limit": 5}',
        words="I read.",
    ),
    call_row("<tool_call>current_time\n</tool_call>", NOW),
    call_row("Action: calculator\nAction Input: 17*23"),
    call_row("Action: current_time\nAction Input: None", NOW),
    text_row("<answer>It is 391.</answer>"),
    text_row("<calculator>17 by 23</calculator>"),
]
# The name of a tool, and what nobody can read.
BROKEN = [
    again('{"name": "calculator", "arguments": {"expression": 17*23}}'),
    again('Sure:\n```json\n{"name": "calculator", "arguments": {"expression": 17*23}}\n```\nIt is 391.'),
    again('{"arguments": {"expression": 17*23}, "name": "calculator"}'),
    again('<function=calculator>{"expression": 17*23}</function>'),
    again('<calculator>{"expression": 17*23}</calculator>'),
    again('Action: calculator\nAction Input: {"expression": 17*23}'),
    again("Action: use_skill\nAction Input: the first one"),
    text_row('{"name": "weather", "arguments": {"city": Rome}}'),
    text_row("calculator {see below}"),
]
# However deep it is nested.
DEEP = [
    call_row(f"[[[{CALL}]]]"),
    *[text_row("[" * depth + CALL + "]" * depth) for depth in (9, 100, 480, 700)],
    again("[" * 2_000 + CALL + "]" * 2_000),
    *[text_row('{"function":' * depth + CALL + "}" * depth) for depth in (9, 100, 480, 600, 2_000)],
    call_row('{"name": "current_time", "timezone": ' + NEST + "}", f'current_time {{"timezone": {NEST}}}'),
    again('{"name": "calculator", "arguments": ' + '{"a": ' * 5_000 + "1" + "}" * 5_001),
    text_row("calculator(" + "[" * 5_000 + "]" * 5_000 + ")"),
]
# Answers.
ANSWERS = [
    text_row('{"name": "Ann", "age": 3}'),
    text_row('{"answer": 391, "name": "calculator"}'),
    text_row('{"name": "calculator", "rating": 5}'),
    text_row('```json\n{"name": "Ann", "arguments": "none"}\n```'),
    text_row('Here is some JSON:\n```json\n{"result": 391}\n```\nDone.'),
    text_row(f"`{CALL}`"),
    text_row("[See the docs](https://example.com)"),
    text_row("<b>391</b>"),
    text_row("calculators are useful"),
    text_row("Action is what counts."),
    text_row("八字是一种传统。"),
]
ROWS = [
    *HERMES,
    *LLAMA,
    *MISTRAL,
    *OTHERS,
    *JSON,
    *PYTHON,
    *SKILLS,
    *HALVES,
    *UNKNOWN,
    *INVENTED,
    *BEHIND,
    *THOUGHTS,
    *CLOTHES,
    *BROKEN,
    *DEEP,
    *ANSWERS,
]
