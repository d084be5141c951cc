"""uiSchema (P14): the seed's example, what each hint and node becomes, and what is said when hints are refused."""

import pytest

from recto.conversation.json import Json
from recto.conversation.ui.compile_ui import UiLimits, compile_ui
from recto.conversation.ui.ui_schema import NODES

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def root_of(hints: object) -> Json:
    compiled = compile_ui(hints)
    assert compiled is not None
    return compiled["root"]


def card(*children: Json) -> Json:
    return {"type": "stack", "appearance": "card", "children": list(children)}


def text_node(content: str) -> Json:
    return card({"type": "text", "content": content, "role": "body"})


def nested(depth: int) -> dict[str, object]:
    """A tree of so many nodes, each in the one before."""
    node: dict[str, object] = {"type": "text", "content": "innermost"}
    for _ in range(depth - 1):
        node = {"type": "stack", "children": [node]}
    return node


# The document


def test_P14_status_title_badge_and_body_give_the_example_of_the_seed():
    hints = {"status": "success", "title": "日程已创建", "badge": True, "body": "您的会议日程创建成功"}
    assert compile_ui(hints) == {
        "version": "2.0",
        "locale": "zh-CN",
        "status": "success",
        "theme": "default",
        "root": {
            "type": "stack",
            "appearance": "card",
            "children": [
                {"type": "text", "content": "日程已创建", "role": "title"},
                {"type": "badge", "label": "SUCCESS", "status": "success"},
                {"type": "text", "content": "您的会议日程创建成功", "role": "body"},
            ],
        },
    }


@pytest.mark.parametrize("hints", [None, {}])
def test_P14_no_hints_no_schema(hints: object):
    assert compile_ui(hints) is None


def test_P14_locale_theme_and_meta_are_named_and_meta_only_as_far_as_it_is_known():
    meta = {"toolId": "t1", "requestId": "r<b>", "secret": "s", "userId": "", "traceId": "x" * 500}
    assert compile_ui({"title": "Hi", "theme": "dark"}, locale="en", meta=meta) == {
        "version": "2.0",
        "locale": "en",
        "status": "info",
        "theme": "dark",
        "meta": {"requestId": "r< b>", "toolId": "t1", "traceId": "x" * 200},
        "root": card({"type": "text", "content": "Hi", "role": "title"}),
    }


# Simple hints


def test_P14_simple_hints_stand_in_the_order_people_read_them():
    hints = {
        "actions": [
            {"label": "Open", "url": "/api/v1/files/1", "style": "primary"},
            {"label": "Go on", "message": "go"},
        ],
        "table": {"columns": ["day", "°C"], "rows": [["Mon", 20.5], ["Tue", None]]},
        "items": ["one", {"type": "divider"}, {"title": "two"}],
        "fields": {"wind": "east", "rain": False},
        "image": {"url": "https://x.test/a.png", "alt": "sky"},
        "body": "Sunny",
        "badge": {"label": "NEW", "status": "warning"},
        "title": "Weather",
    }
    assert root_of(hints) == card(
        {"type": "text", "content": "Weather", "role": "title"},
        {"type": "badge", "label": "NEW", "status": "warning"},
        {"type": "text", "content": "Sunny", "role": "body"},
        {"type": "image", "url": "https://x.test/a.png", "alt": "sky"},
        {"type": "fields", "items": [{"label": "wind", "value": "east"}, {"label": "rain", "value": False}]},
        {
            "type": "list",
            "items": [
                {"type": "text", "content": "one"},
                {"type": "divider"},
                {"type": "stack", "children": [{"type": "text", "content": "two", "role": "title"}]},
            ],
        },
        {"type": "table", "columns": ["day", "°C"], "rows": [["Mon", 20.5], ["Tue", None]]},
        {
            "type": "stack",
            "direction": "horizontal",
            "children": [
                {"type": "button", "label": "Open", "url": "/api/v1/files/1", "style": "primary"},
                {"type": "button", "label": "Go on", "message": "go"},
            ],
        },
    )


TITLE: Json = {"type": "text", "content": "Hi", "role": "title"}


@pytest.mark.parametrize(
    ("hints", "node"),
    [
        ({"status": "error", "badge": True}, {"type": "badge", "label": "ERROR", "status": "error"}),
        ({"status": "error", "badge": "Oh"}, {"type": "badge", "label": "Oh", "status": "error"}),
        ({"status": "error", "badge": "warning"}, {"type": "badge", "label": "WARNING", "status": "warning"}),
        ({"status": "pending"}, {"type": "badge", "label": "PENDING", "status": "pending"}),
        ({"title": "Hi", "body": "", "badge": False, "items": [], "fields": {}, "image": None}, TITLE),
        ({"title": "Hi", "onclick": "x()", "html": "<b>"}, TITLE),
        ({"body": {"type": "markdown", "content": "**a**"}}, {"type": "markdown", "content": "**a**"}),
        ({"type": "text", "content": "a"}, {"type": "text", "content": "a"}),
        (
            {"table": [{"a": 1, "b": "x"}, {"c": True, "a": 2}]},
            {"type": "table", "columns": ["a", "b", "c"], "rows": [[1, "x", None], [2, None, True]]},
        ),
    ],
)
def test_P14_a_hint_becomes_a_node_of_a_card_and_empty_and_unknown_ones_nothing(hints: object, node: Json):
    assert root_of(hints) == card(node)


# Trees

EVERY_NODE: list[Json] = [
    {"type": "stack", "appearance": "plain", "direction": "horizontal", "children": []},
    {"type": "text", "content": "words", "role": "caption"},
    {"type": "badge", "label": "ok", "status": "success"},
    {"type": "markdown", "content": '[a](https://x.test/?a=1&b=2) ![b](/api/b.png "B") <3 `a < b`'},
    {"type": "image", "url": PIXEL, "alt": "a dot", "caption": "small"},
    {"type": "link", "label": "mail", "url": "mailto:a@x.test"},
    {"type": "button", "label": "say", "message": "yes", "style": "danger"},
    {"type": "list", "ordered": True, "items": [{"type": "text", "content": "one"}]},
    {"type": "table", "columns": ["a"], "rows": [[1], ["x"], [None], [True]]},
    {"type": "fields", "items": [{"label": "a", "value": 1.5}]},
    {"type": "code", "content": "<b>javascript:x()</b>", "language": "html"},
    {"type": "divider"},
    {"type": "progress", "value": 3, "max": 5, "label": "steps"},
    {
        "type": "chart",
        "kind": "line",
        "title": "heat",
        "labels": ["Mon", "Tue"],
        "series": [{"name": "°C", "values": [1, None]}],
    },
]


def test_P14_every_node_passes_as_it_is():
    assert root_of({"root": {"type": "stack", "children": EVERY_NODE}}) == {"type": "stack", "children": EVERY_NODE}
    assert [node["type"] for node in EVERY_NODE if isinstance(node, dict)] == list(NODES)


def test_P14_sixteen_nodes_deep_and_five_hundred_pass_and_one_more_is_said():
    assert root_of({"root": nested(16)}) == nested(16)
    assert root_of({"root": nested(17)}) == text_node("innermost")
    dividers: list[Json] = [{"type": "divider"}] * 498
    first: Json = {"type": "text", "content": "a"}
    assert root_of({"type": "stack", "children": ["a", *dividers]}) == {"type": "stack", "children": [first, *dividers]}
    assert root_of({"type": "stack", "children": ["a", "b", *dividers]}) == text_node("a\nb")


# What is refused

GOOD_LINKS = ("https://x.test", "HTTP://x.test/a?b=c#d", "mailto:a@x.test", "/api/v1/agent/attachments/1?sig=x")
BAD_URLS = (
    *("javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "java\tscript:x"),
    *("\x01javascript:x", "javascript\u200b:x", "vbscript:x", "data:text/html,<script>x</script>", "ftp://x.test"),
    *("data:image/svg+xml,x", "data:image/png,x", "DATA:image/png;base64,AAAA", "//evil.test", "\\\\evil.test"),
    *("/\\evil.test", "https:/evil", "/logout", "api/x", "/api/../logout", "/api/%2e%2E/logout", "file:///etc/passwd"),
    *("blob:https://x.test/1", "https://user@evil.test", "https://x.test/a b", "https://x.test/\n", "", "#"),
    'https://x.test/"onload=x',
)


@pytest.mark.parametrize("url", GOOD_LINKS)
def test_P14_links_to_the_web_to_mail_and_to_our_own_api_pass(url: str):
    assert root_of({"type": "link", "label": "a", "url": url}) == card({"type": "link", "label": "a", "url": url})


@pytest.mark.parametrize("url", [*BAD_URLS, PIXEL])
def test_P14_a_link_to_anything_else_leaves_its_label(url: str):
    assert root_of({"type": "link", "label": "the label", "url": url}) == text_node("the label")
    assert root_of({"title": "the label", "actions": [{"label": "Go", "url": url or " "}]}) == text_node(
        "the label\nGo"
    )


@pytest.mark.parametrize("url", [*BAD_URLS, "mailto:a@x.test"])
def test_P14_an_image_from_anywhere_else_leaves_its_words(url: str):
    assert root_of({"title": "t", "image": url or " "}) == text_node("t")
    assert root_of({"type": "image", "url": url, "alt": "what it shows"}) == text_node("what it shows")


@pytest.mark.parametrize(
    ("hints", "words"),
    [
        ("only <b>words</b>", "only < b>words< /b>"),
        (["a", 3, True, None, 2.5, float("inf"), 10**400, "a"], "a\n3\n2.5"),
        ({"unknown": {"text": "told", "url": "x", "script": "javascript:alert(1)"}}, "told"),
        ({"title": "t", "status": "great"}, "t"),
        ({"title": "half \ud83d"}, "half \ufffd"),
        ({"title": "t", "fields": {"n": float("nan")}}, "t"),
        ({"type": "iframe", "content": "c"}, "c"),
        ({"root": {"type": "stack", "children": "c"}}, "c"),
        ({"type": "progress", "value": 7, "max": 5, "label": "l"}, "7\n5\nl"),
        ({"type": "chart", "kind": "bar", "labels": ["a"], "series": [{"name": "s", "values": [1, 2]}]}, "a\ns\n1\n2"),
        ({"type": "table", "columns": ["a", "b"], "rows": [[1]]}, "a\nb\n1"),
        ({"type": "button", "label": "l"}, "l"),
        ({"type": "list", "items": ["i"], "ordered": "yes"}, "i\nyes"),
        ({"type": "code", "content": "c", "language": "a b"}, "c"),
        ({"title": 5, "body": "b"}, "5\nb"),
        ({"a": "java", "b": "script:alert(1)"}, "java\nscript :alert(1)"),
        (b"bytes", "（这里的内容无法显示）"),
        ({"title": {}, "items": {}}, "（这里的内容无法显示）"),
    ],
)
def test_P14_what_is_refused_is_said_as_one_text(hints: object, words: str):
    assert root_of(hints) == text_node(words)


def test_P14_a_refused_document_keeps_its_status_and_speaks_its_locale_and_limits_are_settings():
    assert compile_ui({"status": "error", "theme": "dark", "body": b""}, locale="en-GB") == {
        "version": "2.0",
        "locale": "en-GB",
        "status": "error",
        "theme": "dark",
        "root": text_node("(This content cannot be shown)"),
    }
    compiled = compile_ui({"title": "long title"}, locale="<script>", limits=UiLimits(text=4))
    assert compiled is not None
    assert (compiled["locale"], compiled["root"]) == ("zh-CN", text_node("long…"))


def test_P14_rings_are_refused():
    ring: list[object] = ["round"]
    ring.extend([ring] * 10)
    wheel: dict[str, object] = {"title": "and round"}
    wheel["items"] = [wheel, wheel]
    assert root_of(ring) == text_node("round")
    assert root_of(wheel) == text_node("and round")


def test_P14_a_small_hint_makes_no_large_table():
    rows: list[object] = [{str(column): "x" for column in range(1000)}, *({} for _ in range(1000))]
    assert root_of({"table": rows}) == text_node("x")


def test_P14_long_texts_and_many_values_are_cut():
    assert root_of({"title": "x" * 1_000_000}) == text_node("x" * 20_000 + "…")
    assert root_of({"items": [f"{number:020000}" for number in range(20)]}) == text_node("0" * 20_000 + "…")
    assert root_of({"fields": {str(number): number for number in range(20_000)}}) == text_node(
        ("\n".join(map(str, range(9_998))))[:20_000] + "…"
    )


# Text and Markdown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<script>x</script>", "< script>x< /script>"),
        ("a < b <3 <- <!-- c --> <?php", "a < b <3 <- < !-- c --> < ?php"),
        ("<\x00img src=x>", "< img src=x>"),
        ("a\r\nb\u2028c\x07", "a\nb\nc"),
        (" java\nscript\t: x", " java\nscript : x"),
        ("Data: 42 rows, 3 columns", "Data: 42 rows, 3 columns"),
    ],
)
def test_P14_text_is_shown_as_no_html_and_no_script(text: str, expected: str):
    assert root_of({"title": text}) == card({"type": "text", "content": expected, "role": "title"})


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("# A\n\n- **b** `c`\n", "# A\n\n- **b** `c`\n"),
        ("<b onclick=x>a</b> 1 < 2", "&lt;b onclick=x>a&lt;/b> 1 < 2"),
        ("<https://x.test>", "&lt;https://x.test>"),
        ('[a](https://x.test/b_(c)) [d](/api/e "f")', '[a](https://x.test/b_(c)) [d](/api/e "f")'),
        ("![a](data:image/svg+xml,x)", "a"),
        ("[a](java&#115;cript:x) [b](javascript\\:x) [c](\n//evil.test)", "a b c"),
        ("[a](https://x.test](javascript:x)", r"[a]\(https://x.test]\(javascript:x)"),
        ("[[b] a](https://x.test](javascript:x))", r"[[b] a]\(https://x.test]\(javascript:x))"),
        ("[a][b]\n\n[b]: javascript:x", "[a][b]\n\n[b]\\: javascript:x"),
        ("> - [b]:\n  javascript:x", "> - [b]\\:\n  javascript:x"),
        ("[b]: https://x.test", "[b]: https://x.test"),
        ("if parts[0]: go(x[1])", "if parts[0]: go(x[1])"),
    ],
)
def test_P14_markdown_keeps_no_html_and_only_safe_links(markdown: str, expected: str):
    assert root_of({"type": "markdown", "content": markdown}) == card({"type": "markdown", "content": expected})
