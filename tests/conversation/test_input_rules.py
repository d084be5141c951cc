"""P2: each rule alone, and any two of them at once: the earlier one is named. P1: what `forwardedProps` may say."""

import itertools
from collections.abc import Callable, Mapping
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.input.input_rules import check_input
from recto.conversation.input.run_input import RunOptions, run_options
from recto.conversation.json import Json
from recto.conversation.messages import Text, UserMessage
from recto.errors import InvalidRequest, WireError

THREAD = "550e8400-e29b-41d4-a716-446655440000"
IMAGE: Mapping[str, Json] = {"type": "binary", "mimeType": "image/png", "url": "https://here/x.png"}
Body = dict[str, Json]


def body(*content: Json) -> Body:
    """An input that keeps every rule."""
    user = {"id": "m1", "role": "user", "content": [{"type": "text", "text": "hi"}, dict(IMAGE), *content]}
    return {"threadId": THREAD, "runId": "r1", "messages": [user, {"id": "a1", "role": "assistant", "content": "ok"}]}


def messages_of(body: Body) -> list[dict[str, Json]]:
    return cast("list[dict[str, Json]]", body["messages"])


def with_block(body: Body, **block: Json) -> Body:
    """One more binary block in the first message that has blocks, with these fields or (None) without."""
    block_fields = {name: value for name, value in ({**IMAGE, **block}).items() if value is not None}
    messages = messages_of(body)
    place = next(place for place, message in enumerate(messages) if isinstance(message["content"], list))
    content = [*cast("list[Json]", messages[place]["content"]), block_fields]
    return {**body, "messages": [*messages[:place], {**messages[place], "content": content}, *messages[place + 1 :]]}


def with_words(body: Body, text: str) -> Body:
    first, *others = messages_of(body)
    content = [{"type": "text", "text": text}, *cast("list[Json]", first["content"])]
    return {**body, "messages": [{**first, "content": content}, *others]}


def with_first(body: Body, **message: Json) -> Body:
    return {**body, "messages": [{"id": "x", **message}, *messages_of(body)]}


def many(body: Body) -> Body:
    more = [{"id": f"a{number}", "role": "assistant", "content": "ok"} for number in range(199)]
    return {**body, "messages": [*messages_of(body), *more]}


# In the order of the specification: what it says, and a change that breaks the rule.
BREAKS: list[tuple[str, Callable[[Body], Body]]] = [
    ("threadId must be a valid UUID", lambda body: {**body, "threadId": "abc"}),
    ("runId exceeds length limit", lambda body: {**body, "runId": "r" * 129}),
    ("RunAgentInput.messages exceeds limit", many),
    ("RunAgentInput user message text exceeds limit", lambda body: with_words(body, "字" * 9_999)),
    (
        "RunAgentInput.messages must contain exactly one user message",
        lambda body: {**body, "messages": [*messages_of(body), {"id": "u2", "role": "user", "content": "more"}]},
    ),
    ("RunAgentInput.messages[0].role must be user", lambda body: with_first(body, role="system", content="s")),
    ("binary content requires image mimeType", lambda body: with_block(body, mimeType="application/pdf")),
    ("binary content requires url", lambda body: with_block(body, url=None)),
    ("binary content data is not allowed", lambda body: with_block(body, data="aGk=")),
]


def refusal(body: Json) -> str:
    with pytest.raises(InvalidRequest) as caught_error:
        check_input(body)
    return str(caught_error.value)


@pytest.mark.parametrize(("words", "change"), BREAKS, ids=[words for words, _ in BREAKS])
def test_P2_each_rule_has_its_very_words(words: str, change: Callable[[Body], Body]):
    assert check_input(body()).run == "r1"
    run_input = check_input({**body(), "forwardedProps": {"skill": "bazi", "other": 1}})
    assert (run_input.options, run_input.props) == (RunOptions(skill="bazi"), {"skill": "bazi", "other": 1})
    assert refusal(change(body())) == words


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(range(len(BREAKS)), 2)))
def test_P2_of_two_broken_rules_the_earlier_is_named(first: int, second: int):
    # Whichever was broken first, the order of the rules decides.
    assert refusal(BREAKS[second][1](BREAKS[first][1](body()))) == BREAKS[first][0]


def test_P2_wrong_types_come_before_every_rule():
    for _, change in BREAKS:
        with pytest.raises(WireError, match=r"context\[0\].value: must be a string, is a number"):
            check_input({**change(body()), "context": [{"description": "d", "value": 5}]})


@pytest.mark.parametrize(
    "block", [{"mimeType": 5}, {"url": 5}, {"mimeType": None, "url": None, "data": {}}, {"id": []}]
)
def test_P2_fields_of_a_binary_block_may_be_missing_but_not_of_a_wrong_type(block: dict[str, Json]):
    with pytest.raises(WireError, match=r"messages\[0\].content\[2\].*must be a string"):
        check_input(with_block(body(), **block))


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"mimeType": None, "url": None}, "binary content requires image mimeType"),
        ({"mimeType": "imagepng"}, "binary content requires image mimeType"),
        ({"url": None, "data": "aGk="}, "binary content requires url"),
        ({"data": ""}, "binary content data is not allowed"),
    ],
)
def test_P2_a_binary_block_is_asked_for_its_type_then_its_url_then_its_data(block: dict[str, Json], words: str):
    assert refusal(with_block(body(), **block)) == words


def test_P2_each_rule_is_asked_of_all_blocks_before_the_next():
    # The first block has data, the second no url, the third no image: the last is named.
    broken = with_block(with_block(with_block(body(), data="aGk="), url=None), mimeType="text/plain")
    assert refusal(broken) == "binary content requires image mimeType"


NO_UUID, TOO_LONG = "threadId must be a valid UUID", "runId exceeds length limit"


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        *[("threadId", good, None) for good in (THREAD, THREAD.upper(), "00000000-0000-0000-0000-000000000000")],
        *[("threadId", bad, NO_UUID) for bad in (THREAD.replace("-", ""), "{" + THREAD + "}", f"urn:uuid:{THREAD}")],
        *[("threadId", bad, NO_UUID) for bad in (THREAD + "\n", THREAD.replace("5", "\uff15"), "")],
        *[("runId", good, None) for good in ("r", "字" * 128)],
        *[("runId", bad, TOO_LONG) for bad in ("", "字" * 129)],
    ],
)
def test_P2_a_thread_is_a_uuid_in_any_case_and_a_run_has_a_name_of_1_to_128_characters(
    field: str, value: str, problem: str | None
):
    input_body = {**body(), field: value}
    if problem:
        assert refusal(input_body) == problem
    else:
        assert value in (check_input(input_body).thread, check_input(input_body).run)


def test_P2_exactly_as_much_as_is_allowed_is_allowed():
    words = cast("UserMessage", check_input(with_words(body(), "😀" * 9_998)).messages[0])
    assert sum(len(part.text) for part in words.parts if isinstance(part, Text)) == 10_000
    full = {**body(), "messages": messages_of(many(body()))[:200]}
    assert len(check_input(full).messages) == 200


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": "assistant", "content": "hi"}, "RunAgentInput.messages must contain exactly one user message"),
        ({"role": "user", "content": "x" * 10_001}, "RunAgentInput user message text exceeds limit"),
    ],
)
def test_P2_no_user_message_is_wrong_too_and_the_words_of_a_string_count_like_those_of_blocks(
    message: dict[str, Json], problem: str
):
    assert refusal({**body(), "messages": [{"id": "m", **message}]}) == problem


# Options


def test_P1_known_props_are_read_and_others_are_left_alone():
    words = {"agent": "chat", "skill": "bazi", "scenario": "s", "voice_mode": "calm", "timezone": "Asia/Shanghai"}
    input_body: dict[str, Json] = {
        **words,
        "datasets": ["d1", "d2"],
        "multitask": "interrupt",
        "colour": {"any": "thing"},
    }
    assert run_options(input_body) == RunOptions(**words, datasets=("d1", "d2"), multitask="interrupt")
    assert run_options({}) == run_options(dict.fromkeys(input_body)) == RunOptions()


@pytest.mark.parametrize(
    ("props", "words"),
    [
        ({"agent": 5}, "forwardedProps.agent: must be a string, is a number"),
        ({"skill": " "}, "forwardedProps.skill: is empty"),
        ({"datasets": "d"}, "forwardedProps.datasets: must be an array, is a string"),
        ({"datasets": ["d", 1]}, r"forwardedProps.datasets\[1\]: must be an id, is a number"),
        ({"multitask": "Reject"}, "forwardedProps.multitask: is 'Reject'; it is one of enqueue, reject, interrupt"),
    ],
)
def test_P1_a_value_that_means_nothing_is_refused_by_name(props: dict[str, Json], words: str):
    with pytest.raises(WireError, match=words):
        run_options(props)


FIELDS = ("id", "role", "content", "type", "text", "url", "data", "mimeType", "messages", "threadId")
fields = st.sampled_from(FIELDS) | st.text(max_size=3)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(fields, inner, max_size=5),
    max_leaves=20,
)


@given(json_values, json_values)
def test_P2_whatever_is_sent_is_taken_or_refused_in_words(value: Json, messages: Json):
    for given_value in (value, {"threadId": THREAD, "runId": "r", "messages": messages}):
        try:
            check_input(given_value)
        except (InvalidRequest, WireError) as error:
            assert str(error)
