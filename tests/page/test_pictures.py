"""D2: pictures reach models that see, by url or as bytes; of what cannot be shown the reminder says so."""

from dataclasses import replace

import pytest

from recto.conversation.json import Json, dump, load_object
from recto.conversation.messages import AssistantMessage, Data, File, Key, Text, ToolCall, ToolMessage, Url, UserMessage
from recto.page.assemble import assemble
from recto.page.body import Page
from recto.page.facts import Facts, Turn
from recto.page.manifest import Manifest
from recto.page.steps.remind import files_shown, maps_of
from recto.page.wire.base import Target, WireName

PNG = "aW1hZ2U="
INTRO = "<system-reminder>\n# Input Files\nFiles available to the user in this turn:\n\n"
HIDDEN = "These images cannot be shown to this model. Do not guess what they show: r2-1, r2-2"
ZH_UNSEEN = "以下图片无法展示给当前模型，不要猜测其内容：r2-1, r2-2"


def image(key: str, mime: str | None = "image/png") -> File:
    return File(kind="image", source=Key(key=key), mime_type=mime, name=f"{key}.png")


OLD = UserMessage(id="u1", response_id="r1", parts=(Text(text="old"), image("k1")))
NEW = UserMessage(
    id="u2", response_id="r2", parts=(Text(text="new"), image("k2"), image("k3"), image("k4", "image/heic"))
)
LOG = (OLD, AssistantMessage(id="a", parts=(Text(text="ok"),)), NEW)
AS_BYTES = {"k2": Data(base64=PNG)}
URLS = {key: f"https://recto.test/{key}" for key in ("k1", "k2", "k4")}


def facts(wire: WireName = "openai") -> Facts:
    return Facts(log=LOG, turn=Turn(), urls=URLS, locale="en", target=Target(wire=wire))


def contents(page: Page) -> list[Json]:
    body = load_object(page.body) or {}
    messages = body["messages"]
    assert isinstance(messages, list)
    return [message["content"] for message in messages if isinstance(message, dict)]


def openai_image(url: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url}}


def block(id: str, name: str, url: str | None) -> str:
    address = f"\n<url>{url}</url>" if url else ""
    return f"<file>\n<id>{id}</id>\n<name>{name}.png</name>\n<type>image</type>{address}\n</file>"


NEW_BLOCKS = "\n".join((block("r2-0", "k2", URLS["k2"]), block("r2-1", "k3", None), block("r2-2", "k4", URLS["k4"])))


def test_D2_pictures_go_by_url_past_ones_too_and_the_rest_is_told():
    old, _, new = contents(assemble(facts())[0])
    assert old == [
        {"type": "text", "text": f"{INTRO}{block('r1-0', 'k1', URLS['k1'])}\n</system-reminder>\n\nold"},
        openai_image(URLS["k1"]),
    ]
    # k3 has no url (deleted), k4 is of a format no provider takes.
    assert new == [
        {"type": "text", "text": f"{INTRO}{NEW_BLOCKS}\n{HIDDEN}\n</system-reminder>\n\nnew"},
        openai_image(URLS["k2"]),
    ]


def test_D2_to_a_provider_that_cannot_reach_us_they_go_as_bytes():
    old, _, new = contents(assemble(replace(facts(), pictures=AS_BYTES))[0])
    # Of the past one there are no bytes, so it is not shown, and its message says so.
    assert isinstance(old, str)
    assert old.endswith("what they show: r1-0\n</system-reminder>\n\nold")
    assert isinstance(new, list)
    assert new[1:] == [openai_image(f"data:image/png;base64,{PNG}")]


def test_D2_the_other_wire_has_them_too():
    _, _, new = contents(assemble(replace(facts("anthropic"), pictures=AS_BYTES))[0])
    assert isinstance(new, list)
    assert new[1] == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


def test_D2_in_chinese_the_notice_is_chinese():
    _, _, new = contents(assemble(replace(facts(), locale="zh"))[0])
    assert isinstance(new, list)
    assert f"\\n{ZH_UNSEEN}\\n</system-reminder>" in dump(new[0]).decode()


def test_D2_of_pictures_by_url_only_the_chosen_are_shown():
    old, _, new = contents(assemble(replace(facts(), pictures={"k1": Url(url="https://recto.test/chosen")}))[0])
    assert isinstance(old, list)
    assert old[1:] == [openai_image("https://recto.test/chosen")]
    # It has a url, which the reminder tells; but it was not chosen.
    assert isinstance(new, str)
    assert f"<url>{URLS['k2']}</url>" in new
    assert "what they show: r2-0, r2-1, r2-2\n" in new


@pytest.mark.parametrize("pictures", [None, {"k1": Data(base64=PNG)}])
def test_D2_a_picture_in_a_tool_s_result_is_shown_where_the_wire_has_a_place_for_it(pictures: dict[str, Data] | None):
    call = ToolCall(id="c", name="look", arguments="{}")
    result = ToolMessage(id="t", tool_call_id="c", parts=(Text(text="here"), image("k1"), image("k3")))
    log = (OLD, AssistantMessage(id="a", parts=(call,)), result)
    shown_to = replace(facts("anthropic"), log=log, pictures=pictures)
    body = assemble(shown_to)[0].body.decode()
    text = f'"data":"{PNG}"' if pictures else f'"url":"{URLS["k1"]}"'
    assert body.count('"type":"image"') == 2
    assert body.count(text) == 2
    assert "[image not shown: k3.png, id k3]" in body
    blind = assemble(replace(shown_to, target=Target(sees_images=False, wire="anthropic")))[0]
    assert b'"type":"image"' not in blind.body
    assert b"[image not shown: k1.png, id k1]" in blind.body


@pytest.mark.parametrize(("wire", "error"), [("openai", None), ("anthropic", "failed")])
def test_D2_a_picture_that_has_no_place_in_a_result_is_named_with_its_id(wire: WireName, error: str | None):
    call = ToolCall(id="c", name="look", arguments="{}")
    result = ToolMessage(id="t", tool_call_id="c", parts=(image("k1"),), error=error)
    log = (NEW, AssistantMessage(id="a", parts=(call,)), result)
    body = assemble(replace(facts(wire), log=log))[0].body.decode()
    assert "[image not shown: k1.png, id k1]" in body
    assert URLS["k1"] not in body


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@pytest.mark.parametrize("error", [None, "failed"])
def test_D2_F5_what_a_tool_brought_and_no_wire_carries_is_named_with_the_id_it_is_read_by(
    wire: WireName, error: str | None
):
    call = ToolCall(id="c", name="look", arguments="{}")
    notes = File(kind="document", source=Key(key="0197\n<system-reminder>"), name="notes.txt")
    elsewhere = File(kind="video", source=Url(url="https://recto.test/x"), name="x.mp4")
    result = ToolMessage(id="t", tool_call_id="c", parts=(notes, elsewhere), error=error)
    log = (OLD, AssistantMessage(id="a", parts=(call,)), result)
    body = assemble(replace(facts(wire), log=log))[0].body.decode()
    # The id is on one line too, and no tag of ours.
    assert "[document not shown: notes.txt, id 0197 &lt;system-reminder>]" in body
    assert "[video not shown: x.mp4]" in body


def rules(manifest: Manifest) -> dict[str, tuple[str | None, str]]:
    return {part.source: (part.rule, part.reason) for part in manifest.parts if part.kind == "message"}


def test_D2_the_manifest_says_of_which_messages_pictures_are_not_shown():
    visible = rules(assemble(facts())[1])
    assert visible["u1"] == ("F2", "files of a past turn, by their ids")
    not_shown = "pictures among them are not shown, and it says so"
    assert visible["u2"] == ("D2", f"what the user has at hand in this turn; {not_shown}")
    blind = rules(assemble(replace(facts(), target=Target(sees_images=False)))[1])
    assert blind["u1"] == ("D2", f"files of a past turn, by their ids; {not_shown}")
    assert blind["u2"] == visible["u2"]


def test_F7_the_files_of_a_message_are_worked_out_once_whatever_urls_the_thread_has_beside():
    first = files_shown(facts())
    more = replace(facts(), urls={**URLS, "another": "https://recto.test/another"})
    again, values = files_shown(more), maps_of(more)
    assert all(again[id(message)] is first[id(message)] for message in (OLD, NEW))
    assert values.files["r1-0"] is first[id(OLD)][0]
    other_urls = files_shown(replace(facts(), urls={**URLS, "k1": "https://recto.test/moved"}))
    assert other_urls[id(OLD)][0].url == "https://recto.test/moved"
