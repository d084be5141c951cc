"""A thread named by the model, where its agent says so: one short call after the first answer. May fail."""

from __future__ import annotations

from recto.conversation.locale import language
from recto.conversation.log import Entry, view
from recto.conversation.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    Text,
    UnreadMessages,
    UserMessage,
    texts_of,
)
from recto.conversation.title import title_from
from recto.worker.model.side_call import side_call
from recto.worker.run_state import LoadedRun

ASK = {
    "zh": "给下面的对话起一个标题，不超过十二个字。只写标题，不要引号，不要句号。",
    "en": "Give the conversation below a title of at most six words. Write the title alone: no quotes, no full stop.",
}
SAYS = {"zh": "用户：{user}\n\n助手：{answer}", "en": "User: {user}\n\nAssistant: {answer}"}
# The answer is there already: a title is not worth much waiting.
PATIENCE = 10.0
QUOTES = " \n\"'“”「」《》.。"
# A title needs no more of either.
SHOWN = 2_000


def wants_name(run: LoadedRun) -> bool:
    """Whether the thread is to be named now: at the end of its first turn, by an agent that says so, once."""
    users = sum(1 for message in view(run.writer.log).messages if isinstance(message, (UserMessage, UnreadMessages)))
    is_due = users == 1 and not run.state.is_named and not run.inputs.asked.compact
    return run.inputs.agent.titles == "model" and is_due


async def name_thread(run: LoadedRun) -> None:
    """Ask the model for a title and keep it, unless somebody gave the thread one."""
    run.state.note_named()
    answer = await side_call(run, title_request(run.writer.log, run.inputs.agent.locale), "title", PATIENCE)
    title = title_from(answer.text.strip(QUOTES)) if answer.ended else None
    if title:
        await run.runtime.store.set_title_if_automatic(run.state.row.thread, title)


def title_request(log: tuple[Entry, ...], locale: str) -> tuple[Message, ...]:
    """The conversation so far, and what to do with it."""
    spoken, language_of = view(log).messages, language(locale)
    user = next((_words(message) for message in spoken if isinstance(message, UserMessage)), "")
    answers = [words for message in spoken if isinstance(message, AssistantMessage) and (words := _words(message))]
    said = SAYS[language_of].format(user=user[:SHOWN], answer=(answers or [""])[-1][:SHOWN])
    return SystemMessage(id="title", text=ASK[language_of]), UserMessage(id="said", parts=(Text(text=said),))


def _words(message: UserMessage | AssistantMessage) -> str:
    return "\n".join(texts_of(message))
