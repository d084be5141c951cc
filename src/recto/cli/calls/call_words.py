"""Texts of call reports in English and Chinese; the Chinese ones match the web page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from recto.page.named_rules import PAGE, why

Language: TypeAlias = Literal["en", "zh"]
# Rules write English reasons into the manifest. These are translated.
REASONS: Sequence[tuple[re.Pattern[str], str]] = [
    (re.compile(f"^{pattern}$"), words)
    for pattern, words in (
        (r"as in the conversation", "与对话一致"),
        (r"the model may call it", "模型可以调用它"),
        (r"the model and its options", "模型及其选项"),
        (r"how every request ends", "每个请求的结尾"),
        (r"who the agent is and how it works", "智能体是谁、如何工作"),
        (r"what the user has at hand in this turn", "用户在这一轮手头的东西"),
        (r"files of a past turn, by their ids", "过去一轮的文件，以 id 列出"),
        (r"a summary that stands for what was said before", "代替此前对话的摘要"),
        (r"the summary stands for it", "已由摘要代替"),
        (r"outside the newest (\d+) messages of history", r"不在最近 \1 条历史消息之内"),
        (r"(.+): read (\d+) counted from the newest, (\d+) stay", r"\1：从最新数起第 \2 次读取，只保留 \3 次"),
        (r"result (\d+) counted from the newest, (\d+) stay", r"从最新数起第 \1 个结果，只保留 \2 个"),
        (
            r"result (\d+) counted from the newest, (\d+) stay, and older than (\S+) minutes",
            r"从最新数起第 \1 个结果，只保留 \2 个，且已超过 \3 分钟",
        ),
        (r"a batch read, stale for each of its files: (.+)", r"一次批量读取，其中每个文件都已过时：\1"),
    )
]


@dataclass(frozen=True, kw_only=True)
class CallWords:
    """Texts in one language, with placeholders in braces."""

    kinds: Mapping[str, str]
    decisions: Mapping[str, str]
    columns: Mapping[str, str]
    fields: Mapping[str, str]
    comma: str
    colon: str
    messages: str
    some: Mapping[str, str]
    next_page: str
    call: str
    call_from_newest: str
    of_call: str
    with_skill: str
    size: str
    verified: str
    counted: str
    usage: Mapping[str, str]
    cost: str
    error: str
    window: str
    room: str
    full: str
    saves: str
    price: str
    no_price: str
    nothing_smaller: str
    more_parts: str
    nothing_left_out: str
    rules: str
    since: str
    since_run: str
    first: str
    same: str
    changed: Mapping[str, str]
    left_out_now: str
    left_out_before: str
    holds: str
    breaks: str
    causes: Mapping[str, str]
    notes: Mapping[str, str] = field(default_factory=dict[str, str])
    no_calls: str
    no_such_call: str
    rule_names: Mapping[str, str] = field(default_factory=dict[str, str])
    reasons: Sequence[tuple[re.Pattern[str], str]] = ()

    def why(self, rule: str | None, reason: str) -> str:
        """Return a reason with the name of its rule."""
        if not self.reasons:
            return why(rule, reason)
        told = "；".join(self._reason(one) for one in reason.split("; "))
        named = self.rule_names.get(rule or "")
        return f"{named}：{told}" if named else told

    def _reason(self, reason: str) -> str:
        found = next(((pattern, words) for pattern, words in self.reasons if pattern.match(reason)), None)
        return found[0].sub(found[1], reason) if found else reason


ENGLISH = CallWords(
    kinds={},
    decisions={},
    columns={},
    fields={},
    comma=", ",
    colon=": ",
    messages="{count:,} messages",
    some={"tool": "{count} tools", "message": "{count} messages"},
    next_page="The next page, before your words: {agent} by {model}",
    call="Call {n} of {calls} of run {run}",
    call_from_newest="Call {n} of {calls}, counted from the newest; run {run}",
    of_call="for a {purpose} by {model}, agent {agent}{skill}, {started}",
    with_skill=", skill {skill}",
    size="{tokens:,} tokens in {bytes:,} bytes",
    verified="; digest verified",
    counted="The provider counted {usage}.",
    usage={
        "inputTokens": "{count:,} in",
        "cachedInputTokens": "{count:,} of these from its cache",
        "outputTokens": "{count:,} out",
    },
    cost="It cost {price} {currency}.",
    error="It failed: {error}",
    window="Window: {tokens:,} of {window:,} tokens, {share}.",
    room="At {full:,} ({at}) what is old is summarised: {left:,} to go.",
    full="From {full:,} ({at}) on, what is old is summarised before a call.",
    saves="Folding, cutting and leaving out saves {tokens:,} tokens on each call.",
    price="That is {fresh} {currency}, or {cached} {currency} where the provider's cache would have had them.",
    no_price="What that is in money is unknown: the list of prices has no {model}.",
    nothing_smaller="Nothing is folded, cut or left out.",
    more_parts="and {count:,} more, which save {tokens:,} tokens",
    nothing_left_out="Nothing was left out.",
    rules=f"{PAGE} tells what the rules are.",
    since="Since call {n}",
    since_run="Since call {n} of run {run}",
    first="It is the first of its kind in the thread: there is nothing to compare it with.",
    same="the same",
    changed={"parts": "{count:,} parts", "part": "1 part", "added": "added", "gone": "gone"},
    left_out_now="now one of {count:,} left out",
    left_out_before="was left out before",
    holds="The prefix holds: the page begins with the whole of the one before.",
    breaks=(
        "The prefix breaks at byte {offset:,}, in {part}: {cause}. {tokens:,} tokens behind it stay as they were and "
        "have to be read again."
    ),
    causes={},
    no_calls="No model was asked in this conversation yet. Say something, then look again.",
    no_such_call="There is no call {n}: this conversation has {calls}, and 1 is the newest.",
)
CHINESE = CallWords(
    kinds={
        "envelope": "框架",
        "tool": "工具",
        "system": "系统提示词",
        "prompt": "提示",
        "quote": "引用的文档",
        "summary": "摘要",
        "message": "消息",
        "closing": "结尾",
        "user": "用户",
        "assistant": "助手",
        "result": "工具结果",
    },
    decisions={
        "kept": "保留",
        "folded": "折叠",
        "cut": "删减",
        "repaired": "修复",
        "injected": "注入",
        "dropped": "略去",
    },
    columns={
        "Part": "部分",
        "Share": "占比",
        "Tokens": "token",
        "Was": "原为",
        "Decision": "处理",
        "Why": "原因",
        "Why, and how it begins": "原因与开头",
        "Left out": "略去",
        "Rule": "规则",
        "Call": "调用",
        "For": "用途",
        "Model": "模型",
        "Ended": "结束",
        "Saved": "节省",
        "reply": "回答",
        "summary": "摘要",
        "title": "标题",
        "failed": "失败",
    },
    fields={
        "role": "角色",
        "decision": "处理方式",
        "rule": "规则",
        "reason": "原因",
        "receipts": "折叠凭据",
        "upto": "范围",
        "count": "消息数",
        "tokens": "token 数",
        "content": "内容",
        "place": "位置",
    },
    comma="、",
    colon="：",
    messages="{count:,} 条消息",
    some={"tool": "{count} 个工具", "message": "{count} 条消息"},
    next_page="下一个页面（不含尚未发出的话）：智能体 {agent}，模型 {model}",
    call="运行 {run} 的第 {n} 次调用（共 {calls} 次）",
    call_from_newest="从最新数起第 {n} 次调用（共 {calls} 次），运行 {run}",
    of_call="用途：{purpose}，模型 {model}，智能体 {agent}{skill}，{started}",
    with_skill="，技能 {skill}",
    size="{tokens:,} token，{bytes:,} 字节",
    verified="；已验证",
    counted="服务商的计数：{usage}。",
    usage={
        "inputTokens": "输入 {count:,}",
        "cachedInputTokens": "其中缓存读取 {count:,}",
        "outputTokens": "输出 {count:,}",
    },
    cost="费用 {price} {currency}。",
    error="这次调用失败了：{error}",
    window="窗口：{tokens:,} / {window:,} token，{share}。",
    room="达到 {full:,}（{at}）时会先为旧内容写摘要：还差 {left:,}。",
    full="从 {full:,}（{at}）起，每次调用之前会先为旧内容写摘要。",
    saves="折叠、删减与略去使每次调用节省 {tokens:,} token。",
    price="合 {fresh} {currency}；若服务商的缓存里有它们，则为 {cached} {currency}。",
    no_price="价格未知：价目表中没有 {model}。",
    nothing_smaller="没有折叠、删减或略去任何内容。",
    more_parts="以及另外 {count:,} 个部分，共节省 {tokens:,} token",
    nothing_left_out="没有略去任何内容。",
    rules=f"规则见 {PAGE}。",
    since="与第 {n} 次调用相比",
    since_run="与运行 {run} 的第 {n} 次调用相比",
    first="这是对话中同类的第一次调用，前面没有可比较的调用。",
    same="相同",
    changed={"parts": "{count:,} 个部分", "part": "1 个部分", "added": "新增", "gone": "消失"},
    left_out_now="现在与其他消息一起略去，共 {count:,} 条",
    left_out_before="此前被略去",
    holds="前缀不变：这个页面以上一次的整个页面开头，缓存仍然有效。",
    breaks="前缀在第 {offset:,} 字节、{part}处断开：{cause}。其后 {tokens:,} token 没有变化，但要重新读取。",
    causes={
        "turn_closed": "新的一轮开始了",
        "window_slid": "有消息滑出了历史窗口",
        "fold_step": "旧的结果被折叠了",
        "compaction": "旧的内容已由摘要代替",
        "skill_changed": "启用了另一个技能",
        "prompt_changed": "系统提示词变了",
        "tools_changed": "可用的工具变了",
        "settings_changed": "模型的选项变了",
        "documents_changed": "引用的文档变了",
        "reminder_changed": "某条消息的文件、数据集、上下文或网址变了",
        "rollback": "用户的一条消息被撤回了",
        "retry": "一个回答被重新生成",
        "repaired": "一个调用或结果补齐了，或失去了另一半",
        "model_changed": "调用发给了另一个模型",
        "purpose_changed": "这次调用另有用途",
    },
    notes={
        "A run is at work on this thread: what it says before the next one begins is not in this page.": (
            "正在写一个回答：它在下一轮开始前所说的内容不在这个页面里。"
        ),
        "The page has no room: a run would have what is old summarised first, and send another page.": (
            "空间不足，会先为旧内容写摘要，然后发送另一个页面。"
        ),
        "A run would run tools first; this page has no results of them.": "会先运行工具；这个页面还没有它们的结果。",
        "A run would wait for the results of the client's calls, and send nothing.": (
            "会等待需要你回答的内容，什么都不发送。"
        ),
    },
    no_calls="这个对话还没有调用过模型。先说点什么，再来查看。",
    no_such_call="没有第 {n} 次调用：这个对话有 {calls} 次，1 是最新的一次。",
    rule_names={
        "S1": "提示词预算",
        "S2": "历史窗口",
        "S5": "技能目录",
        "S9": "系统提示词",
        "F1": "提醒",
        "F2": "过去各轮的文件",
        "F3": "防伪造",
        "D2": "文档与图片",
        "P11": "调用与结果",
        "P14": "给客户端的提示",
        "R2": "更新的读取",
        "R5": "各文件更新的读取",
        "R6": "保持原样",
        "R8": "旧命令",
        "R9": "旧搜索",
        "R10": "修复",
        "R13": "压缩",
        "X2": "按成本折叠",
        "fit": "适配",
    },
    reasons=REASONS,
)
WORDS: Mapping[Language, CallWords] = {"en": ENGLISH, "zh": CHINESE}
