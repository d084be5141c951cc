"""Texts of the terminal in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recto.cli.calls.call_words import Language


@dataclass(frozen=True, kw_only=True)
class ChatWords:
    """Texts in one language, with placeholders in braces."""

    commands: Mapping[str, str]
    prompt_help: str
    greeting: str
    joined: str
    started: str
    taken_over: str
    thinking: str
    running: str
    waiting: str
    queued: str
    cancelling: str
    cancelled: str
    length: str
    refused: str
    nothing_to_compact: str
    taken_back: str
    failed: str
    folded: str
    more_lines: str
    again_leaves: str
    pasted: str
    opens: str
    nothing_to_open: str
    arguments: str
    output: str
    result: str
    ask: str
    keys: str
    deny_words: str
    edit_arguments: str
    not_json: str
    aside: str
    offered: str
    sure_always: str
    end_first: str
    unsent: str
    always: str
    approved: str
    denied: str
    waits: str
    rollback: str
    nothing_said: str
    put_back_files: str
    restored: str
    left_files: str
    rolled_back: str
    undone: str
    resume: str
    no_threads: str
    choose_agent: str
    choose_skill: str
    no_skills: str
    now_agent: str
    now_skill: str
    model_is: str
    no_files: str
    forked: str
    new_thread: str
    resumed: str
    elsewhere: str
    unknown_command: str
    search: str
    choose_keys: str
    cost: str
    newest_only: str
    untitled: str
    no_terminal: str
    changed: str
    attached: str
    no_file: str
    to_resume: str
    lost: str
    unreachable: str
    ages: tuple[str, str, str, str]


WORDS: Mapping[Language, ChatWords] = {
    "en": ChatWords(
        commands={
            "/agents": "who answers",
            "/skills": "the skill to go on in",
            "/model": "the model that answers",
            "/files": "files that were sent, and files that changed",
            "/context": "what the next page is made of",
            "/explain": "the same of an earlier call: /explain N, the newest is 1",
            "/compact": "have the model summarise what is old",
            "/rollback": "go back to a message of yours (Esc Esc)",
            "/undo": "take the last rollback back",
            "/fork": "go on in a copy of this thread",
            "/approve": "decide on calls that wait",
            "/resume": "go on with another thread",
            "/new": "begin a new thread",
            "/cost": "tokens and prices of this thread",
            "/help": "keys and commands",
            "/quit": "leave (Ctrl-D)",
        },
        prompt_help=(
            "Enter sends, Alt-Enter or Ctrl-J begins a line, @ names a file, / a command. Esc Esc clears the input, or "
            "goes back to a message. Ctrl-O opens the newest call, again the one before. Ctrl-C ends the run; twice at "
            "the prompt it leaves, as Ctrl-D does."
        ),
        greeting="{agent} on {server}. /help has keys and commands.",
        joined="Joined the server of {data}.",
        started="Started a server on {data}.",
        taken_over="The server is gone. This terminal serves {data} now; nothing is lost.",
        thinking="thinking",
        running="running",
        waiting="waiting",
        queued="queued",
        cancelling="ending the run",
        cancelled="The run was ended.",
        length="The answer is cut: it came to the model's limit.",
        refused="The model declined to answer.",
        nothing_to_compact="There is nothing to summarise.",
        taken_back="(taken back; it is said again)",
        failed="The run failed: {message}",
        folded="{count} earlier messages are folded away",
        more_lines="{count} lines more",
        again_leaves="Ctrl-C again leaves.",
        pasted="[Pasted text #{number}, {lines} lines]",
        opens="Ctrl-O opens",
        nothing_to_open="There is no call to open.",
        arguments="arguments",
        output="output",
        result="result",
        ask="{tool} waits for you",
        keys="y once · a always in this thread · n deny · e edit the arguments · Esc later",
        deny_words="Why not? The model reads it. Enter denies, Esc goes back",
        edit_arguments="The arguments, as JSON. Enter calls it with these, Esc goes back",
        not_json="That is no JSON object.",
        aside="{count} calls wait. /approve decides; a message denies them.",
        offered="Something waits for your decision: Tab decides",
        sure_always="{tool} is to ask no more in this thread? a once more: yes · Esc goes back",
        end_first="A run is at work. Ctrl-C ends it; then you can go back.",
        unsent="Not sent: {words}",
        always="{tool} asks no more in this thread.",
        approved="approved",
        denied="denied",
        waits="waits for you",
        rollback="Go back to before which message?",
        nothing_said="Nothing was said here yet.",
        put_back_files="Files changed since then, {count}: {names}. Put them back as they were? y yes · n no",
        restored="Put back: {names}",
        left_files="Left as they are: {names}",
        rolled_back="Went back. /undo takes it back.",
        undone="{count} messages came back.",
        resume="Go on with which thread?",
        no_threads="There are no threads yet.",
        choose_agent="Who answers?",
        choose_skill="Which skill?",
        no_skills="{agent} has no skills.",
        now_agent="{agent} answers from now on.",
        now_skill="The next message goes on in {skill}.",
        model_is="{agent} answers with {model}. It is the agent's (model in AGENT.md) or the server's (RECTO_MODEL).",
        no_files="No files were sent, and none changed.",
        forked="This is a copy now: {thread}",
        new_thread="A new thread.",
        resumed="{title} ({thread})",
        elsewhere="This thread was turned back elsewhere; as it is now:",
        unknown_command="There is no command {name}. /help lists all.",
        search="search",
        choose_keys="↑ ↓ Enter chooses · Esc leaves it",
        cost="{calls} calls, {input} tokens in ({cached} cached), {output} out, {saved} saved by folding{price}",
        newest_only=" (the newest {count} calls alone)",
        untitled="(no title)",
        no_terminal='this is no terminal; say something (recto chat "question"), or pipe it in',
        changed="changed",
        attached="sent",
        no_file="There is no file {path}; it is sent as you wrote it.",
        to_resume="Go on with: recto chat --resume {thread}",
        lost="The server does not answer. It is asked again.",
        unreachable="{problem} It is tried again.",
        ages=("now", "{n} min", "{n} h", "{n} d"),
    ),
    "zh": ChatWords(
        commands={
            "/agents": "由谁回答",
            "/skills": "接下来用的技能",
            "/model": "回答的模型",
            "/files": "发送过的文件和改动过的文件",
            "/context": "下一页由什么组成",
            "/explain": "看以前某次调用：/explain N，1 是最近的",
            "/compact": "让模型总结旧内容",
            "/rollback": "回到你说过的某句话（连按两次 Esc）",
            "/undo": "撤销上一次回退",
            "/fork": "在本对话的副本里继续",
            "/approve": "处理等待确认的调用",
            "/resume": "继续另一个对话",
            "/new": "开始新对话",
            "/cost": "本对话的用量和价格",
            "/help": "按键和命令",
            "/quit": "离开（Ctrl-D）",
        },
        prompt_help=(
            "Enter 发送，Alt-Enter 或 Ctrl-J 换行，@ 选文件，/ 输命令。连按两次 Esc 清空输入，或回到某句话。"
            "Ctrl-O 展开最近的调用，再按展开更早的。Ctrl-C 结束运行；空闲时连按两次离开，Ctrl-D 也可离开。"
        ),
        greeting="{agent}，服务器 {server}。/help 查看按键和命令。",
        joined="已连接 {data} 的服务器。",
        started="已在 {data} 上启动服务器。",
        taken_over="服务器已退出，现在由本终端为 {data} 服务，没有丢失任何内容。",
        thinking="思考中",
        running="运行中",
        waiting="等待中",
        queued="排队",
        cancelling="正在结束运行",
        cancelled="运行已结束。",
        length="回答被截断：到了模型的上限。",
        refused="模型拒绝回答。",
        nothing_to_compact="没有可总结的内容。",
        taken_back="（已收回，将重新回答）",
        failed="运行失败：{message}",
        folded="更早的 {count} 条消息已折叠",
        more_lines="还有 {count} 行",
        again_leaves="再按一次 Ctrl-C 离开。",
        pasted="[粘贴文本 #{number}，{lines} 行]",
        opens="Ctrl-O 展开",
        nothing_to_open="没有可展开的调用。",
        arguments="参数",
        output="输出",
        result="结果",
        ask="{tool} 等你确认",
        keys="y 允许一次 · a 本对话一直允许 · n 拒绝 · e 修改参数 · Esc 稍后",
        deny_words="为什么不行？模型会读到。Enter 拒绝，Esc 返回",
        edit_arguments="参数（JSON）。Enter 用它调用，Esc 返回",
        not_json="不是 JSON 对象。",
        aside="有 {count} 个调用在等。/approve 处理；发新消息等于拒绝。",
        offered="有事等你决定：按 Tab 决定",
        sure_always="{tool} 在这个对话里不再询问？再按一次 a 确认 · Esc 返回",
        end_first="正在运行。先按 Ctrl-C 结束它，再回退。",
        unsent="没有发出：{words}",
        always="本对话里 {tool} 不再询问。",
        approved="已允许",
        denied="已拒绝",
        waits="等你确认",
        rollback="回到哪句话之前？",
        nothing_said="这里还没有说过话。",
        put_back_files="此后有 {count} 个文件改动（{names}）。要恢复原样吗？y 是 · n 否",
        restored="已恢复：{names}",
        left_files="未恢复：{names}",
        rolled_back="已回退。/undo 可撤销。",
        undone="恢复了 {count} 条消息。",
        resume="继续哪个对话？",
        no_threads="还没有对话。",
        choose_agent="由谁回答？",
        choose_skill="用哪项技能？",
        no_skills="{agent} 没有技能。",
        now_agent="之后由 {agent} 回答。",
        now_skill="下一条消息用技能 {skill}。",
        model_is="{agent} 用 {model} 回答。模型由 agent（AGENT.md 的 model）或服务器（RECTO_MODEL）决定。",
        no_files="没有发送过文件，也没有改动过文件。",
        forked="现在是副本：{thread}",
        new_thread="新对话。",
        resumed="{title}（{thread}）",
        elsewhere="本对话在别处被回退，现在是：",
        unknown_command="没有命令 {name}，/help 列出全部。",
        search="搜索",
        choose_keys="↑ ↓ Enter 选择 · Esc 取消",
        cost="{calls} 次调用，输入 {input} token（缓存 {cached}），输出 {output}，精简省下 {saved}{price}",
        newest_only="（仅最近 {count} 次调用）",
        untitled="（无标题）",
        no_terminal='这里不是终端；请直接提问（recto chat "问题"），或用管道输入',
        changed="已改动",
        attached="已发送",
        no_file="没有文件 {path}，按原文发送。",
        to_resume="继续：recto chat --resume {thread}",
        lost="服务器没有回应，正在重试。",
        unreachable="{problem} 正在重试。",
        ages=("刚刚", "{n} 分钟", "{n} 小时", "{n} 天"),
    ),
}
