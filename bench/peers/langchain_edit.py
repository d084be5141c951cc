"""LangChain's ClearToolUsesEdit on a conversation in OpenAI form, run at each line that comes in.

The first line of the input is `{"messages": [...], "keep": n}`. Each further line names a run and is answered with a
line of JSON: the seconds it took, the tokens it counted, how many results it cleared. Runs are `cold`, `again` (the
tokenizer knows the words) and `copied` (cold, with the deep copy that ContextEditingMiddleware makes before each call).
"""

import gc
import json
import sys
import time
from copy import deepcopy
from itertools import pairwise

import orjson
import splintr
from langchain.agents.middleware import ClearToolUsesEdit
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

TOKENS_PER_MESSAGE = 4
CONTROL_MARK = "<|"
TOKENIZER = splintr.Tokenizer.from_pretrained("o200k_base")


def main():
    task = json.loads(sys.stdin.readline())
    rows = task["messages"]
    count_tokens(converted(rows))  # loads the vocabulary
    for line in sys.stdin:
        messages = converted(rows)
        edit, kind = ClearToolUsesEdit(trigger=1, keep=task["keep"]), line.strip()
        if kind != "again":
            TOKENIZER.clear_cache()
        tokens = []
        gc.collect()
        begin = time.perf_counter()
        if kind == "copied":
            messages = deepcopy(list(messages))
        edit.apply(messages, count_tokens=lambda history: tokens.append(count_tokens(history)) or tokens[-1])
        seconds = time.perf_counter() - begin
        cleared = sum(1 for message in messages if message.response_metadata.get("context_editing"))
        print(json.dumps({"seconds": seconds, "tokens": tokens[0], "cleared": cleared}), flush=True)


def converted(rows):
    """The conversation as LangChain has it. The text of the arguments is kept where its OpenAI adapter keeps it."""
    return [convert(row) for row in rows]


def convert(row):
    content, id = row["content"] or "", row["id"]
    match row["role"]:
        case "system":
            return SystemMessage(content=content, id=id)
        case "user":
            return HumanMessage(content=content, id=id)
        case "tool":
            status = row.get("messageStatus", "success")
            return ToolMessage(content=content, id=id, tool_call_id=row["tool_call_id"], status=status)
    calls = row.get("tool_calls", ())
    rows = [
        {"name": call["function"]["name"], "args": orjson.loads(call["function"]["arguments"]), "id": call["id"]}
        for call in calls
    ]
    return AIMessage(content=content, id=id, tool_calls=rows, additional_kwargs={"tool_calls": calls} if calls else {})


def count_tokens(messages):
    """The same texts in one batch of the same vocabulary, as recto.page.text.tokens counts them."""
    texts = [scrub(text) for message in messages for text in texts_of(message) if text]
    _, offsets = TOKENIZER.encode_batch_flat(texts)
    counts = [end - start for start, end in pairwise(memoryview(offsets).cast("Q"))]
    for index, text in enumerate(texts):
        if CONTROL_MARK in text:
            counts[index] = len(TOKENIZER.encode_ordinary(text))
    return sum(counts) + TOKENS_PER_MESSAGE * len(messages)


def texts_of(message):
    content = message.content
    texts = [content] if isinstance(content, str) else [block["text"] for block in content]
    for call in message.additional_kwargs.get("tool_calls", ()):
        texts += (call["function"]["name"], call["function"]["arguments"])
    return texts


def scrub(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


if __name__ == "__main__":
    main()
