"""Replies of a real small model, as they came (P11): what must happen was written down by people who read them.

They are of the agents `chat` and `vibe-en`; `bench/small_model.py --replies FILE` keeps more of them.
"""

import json
from itertools import count
from pathlib import Path
from typing import Literal, NotRequired, TypedDict, cast

import pytest

from recto.conversation.messages import ToolOffer
from recto.models.ports import CallDelta, CallStarted, Delta, ReplyEnd, TextDelta
from recto.worker.tools.calls_in_text import CallsInText
from recto.worker.tools.offered_tools import OfferedTools

SKILLS = '{"properties": {"skill": {"enum": ["bazi", "tarot", "zodiac", "career", "lifecoach"]}}}'


class Must(TypedDict):
    """The expected result: a new request, a call with the words before it, or all the words."""

    again: NotRequired[bool]
    call: NotRequired[str]
    arguments: NotRequired[dict[str, object]]
    words: bool | str


class RealReply(TypedDict):
    model: str
    mode: Literal["auto", "prompt"]
    tools: list[str]
    finish: Literal["stop", "length"]
    reply: str
    must: Must


REPLIES = cast("list[RealReply]", json.loads(Path(__file__).with_name("real_replies.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("size", [1, 4, 10_000])
@pytest.mark.parametrize("one", REPLIES, ids=lambda one: str(one["reply"])[:50])
def test_P11_what_a_real_model_wrote_is_what_it_meant(one: RealReply, size: int):
    parameters = {"use_skill": SKILLS}
    offers = [ToolOffer(name=name, description="", parameters=parameters.get(name, "{}")) for name in one["tools"]]
    tools = OfferedTools(offers, chooser="use_skill")
    reader = CallsInText((f"c{number}" for number in count()), tools, is_native=one["mode"] == "auto")
    wrote = one["reply"]
    pieces: list[Delta] = [TextDelta(text=wrote[at : at + size]) for at in range(0, len(wrote), size)]
    deltas = [part for piece in (*pieces, ReplyEnd(finish=one["finish"])) for part in reader.add(piece)]
    must = one["must"]
    if must.get("again"):
        assert reader.problem
        return
    assert reader.problem == ""
    words = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    calls = [delta.name for delta in deltas if isinstance(delta, CallStarted)]
    arguments = [json.loads(delta.arguments) for delta in deltas if isinstance(delta, CallDelta)]
    if "call" in must:
        assert (calls, arguments, words) == ([must["call"]], [must.get("arguments")], must["words"])
    else:
        assert (calls, words) == ([], wrote.strip())
