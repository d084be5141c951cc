"""Requests that begin as an earlier one does: they take its items, and are the same as parsed from scratch."""

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json, dump
from recto.errors import WireError
from recto.page.sent_request import SentRequest, count_shared, heads_of, parse_request
from recto.page.wire.openai import OPENAI
from tests.api.relaying_server import user
from tests.page.test_request import values


def parse_or_error(body: bytes, predecessors: Sequence[SentRequest] = ()) -> SentRequest | str:
    """Parse a body. Return the request, or the error as text."""
    try:
        return parse_request(body, predecessors)
    except WireError as error:
        return str(error)


def test_X3_a_request_takes_the_leading_items_of_the_earlier_one_that_has_most_of_them():
    short = parse_request(dump({"messages": [user("hi")]}))
    long = parse_request(dump({"model": "m", "messages": [user("hi"), user("é"), user("you")]}))
    body = dump({"stream": True, "messages": [user("hi"), user("é"), user("YOU"), user("and")]})
    request = parse_request(body, [short, long])
    assert count_shared(request, long) == 2
    heads = heads_of(request.items, OPENAI)
    assert heads_of(request.items, OPENAI, heads[:2]) == heads


def test_X3_an_item_with_other_blanks_before_it_is_parsed():
    earlier = parse_request(b'{"messages":[{"a":1},{"b":2}]}')
    request = parse_request(b'{"messages":[{"a":1}, {"b":2}]}', [earlier])
    assert count_shared(request, earlier) == 1
    assert [item.lead for item in request.items] == ["", ", "]


def test_X3_a_number_that_goes_on_is_another_item():
    earlier = parse_request(b'{"messages":[1,{"a":1}]}')
    assert parse_request(b'{"messages":[12,{"a":1}]}', [earlier]).items[0].value == 12


ODD_ITEMS = ('{"a":1,"a":2}', '{"role" : "user","content":"日本 é 😀"}', "12", '"x"', '{"messages":[{}]}', "[{}]")
INSERTED = ("", " ", ",", "1", "]", "}", '"', "\\", "é", ",{}", '{"a":1},', '],"messages":[{}')


def encode(value: Json, colon: str) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", colon))


def body_of(fields: Sequence[tuple[str, Sequence[str]]], blank: str) -> str:
    """Return a request with these lists. A name may be there twice."""
    comma = f"{blank},{blank}"
    lists = [f'"{name}":{blank}[{blank}{comma.join(items)}{blank}]' for name, items in fields]
    return f"{{{comma.join(lists)}}}"


items = st.builds(encode, values, st.sampled_from([":", " : "])) | st.sampled_from(ODD_ITEMS)
fields = st.tuples(st.sampled_from(["messages", "messages", "model"]), st.lists(items, max_size=5))
bodies = st.builds(body_of, st.lists(fields, min_size=1, max_size=3), st.sampled_from(["", " ", "\r\n\t"]))


@st.composite
def edits(draw: st.DrawFn, text: str) -> bytes:
    """A text with some characters replaced anywhere, or cut off in the middle of a character."""
    begin = draw(st.integers(0, len(text)))
    end = draw(st.integers(begin, min(len(text), begin + 3)))
    body = (text[:begin] + draw(st.sampled_from(INSERTED)) + text[end:]).encode()
    return body[: len(body) - draw(st.sampled_from([0, 0, 0, 1, 2]))]


@given(first=bodies, others=st.lists(bodies, max_size=2), data=st.data())
def test_X3_a_request_is_parsed_to_the_same_values_and_errors_with_and_without_earlier_ones(
    first: str, others: list[str], data: st.DataObject
):
    predecessors = [
        one for one in [parse_or_error(text.encode()) for text in (first, *others)] if isinstance(one, SentRequest)
    ]
    # An edit, and an edit of that: the second has items of requests that took theirs from others.
    text = first
    for _ in range(2):
        body = data.draw(edits(text))
        request = parse_or_error(body, predecessors)
        assert request == parse_or_error(body)
        predecessors += [request] if isinstance(request, SentRequest) else []
        text = body.decode(errors="ignore")
