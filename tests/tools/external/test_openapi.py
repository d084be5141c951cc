"""OpenAPI files as operations, and real calls over HTTP."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from recto.agents.external_tools import OpenApiSettings, SettingsPlace
from recto.conversation.json import Json
from recto.conversation.messages import File
from recto.tools.external.openapi_file import NotOpenApi, read_openapi
from tests.tools.external.external_sources import QUICK, call, keep_running, names, services, words
from tests.tools.external.shop_service import FILE, KEY, Shop, open_shop

SECRETS = {"SHOP": KEY, "LOGIN": "ada:love-lace"}
TEA = '{"name":"tea","price":null}'
SECURITY = {"key": "secret:SHOP", "login": "secret:LOGIN"}


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with open_shop() as one:
        yield one


def settings(folder: Path, url: str, **more: object) -> OpenApiSettings:
    file = folder / "shop.yaml"
    file.write_text(FILE, encoding="utf-8")
    place = SettingsPlace(file=folder / "AGENT.md", line=3)
    shop_settings = OpenApiSettings(name="shop", place=place, file=file, server=url, security=SECURITY, internal=True)
    return replace(shop_settings, **more)


async def test_operations_are_tools_and_arguments_go_where_they_belong(tmp_path: Path, shop: Shop):
    async with keep_running(settings(tmp_path, shop.url), services(SECRETS)) as source:
        assert names(source)[:4] == ["shop__getItem", "shop__add_item", "shop__put_lists", "shop__sendForm"]
        assert source.state.warnings == (
            "#/components/schemas/Item refers to itself; from there on any value is taken",
            "POST /upload is left out: its body is application/pdf; JSON and forms are known here",
        )
        shop.asked.clear()
        arguments = {"id": "a/../b?c#d{id}", "verbose": True, "tags": ["x y", "z"], "X-Trace": "a\r\nX-Key: b"}
        assert words(await call(source, "shop__getItem", arguments)) == '{"ok":true}'
        await call(source, "shop__add_item", {"name": "tea", "price": None})
        await call(source, "shop__put_lists", {"body": [1, 2]})
        await call(source, "shop__sendForm", {"a": "b c"})
        first, second, third, fourth = shop.asked
        assert first["path"] == "/v1/items/a%2F..%2Fb%3Fc%23d%7Bid%7D"
        assert (first["query"], first["x-key"], first["x-trace"]) == ("verbose=true&tags=x+y&tags=z", KEY, "a X-Key: b")
        assert (second["body"], second["authorization"]) == (TEA, "Basic YWRhOmxvdmUtbGFjZQ==")
        assert (third["method"], third["body"], third["content-type"]) == ("PUT", "[1,2]", "application/json")
        assert (fourth["body"], fourth["content-type"]) == ("a=b+c", "application/x-www-form-urlencoded")


async def test_what_goes_wrong_reaches_the_model_without_secrets(tmp_path: Path, shop: Shop):
    async with keep_running(settings(tmp_path, shop.url), services({"SHOP": "another-key", "LOGIN": "x"})) as source:
        rejection = await call(source, "shop__getItem", {"id": "1"})
        assert rejection.error == "error"
        assert words(rejection) == 'shop__getItem failed with status 403: {"error":"wrong key (hidden)"}'
        for item in ({"name": 1}, {"name": "a", "price": 0}):
            assert (await call(source, "shop__add_item", item)).error == "invalid_arguments"
        shop.asked.clear()
        for id in ("..", ""):
            assert "cannot be a part of an address" in words(await call(source, "shop__getItem", {"id": id}))
        assert shop.asked == []
        # A redirect is an answer, and nobody goes there.
        assert "status 307" in words(await call(source, "shop__away"))
        assert isinstance((await call(source, "shop__picture")).parts[0], File)


async def test_calls_are_bounded_in_time_and_size(tmp_path: Path, shop: Shop):
    limits = replace(QUICK, message_bytes=50_000, description_characters=20)
    slow_settings = settings(tmp_path, shop.url, seconds=0.3, operations=("slow", "huge", "nothing"))
    async with keep_running(slow_settings, services(SECRETS, limits)) as source:
        assert names(source) == ["shop__slow", "shop__huge"]
        assert source.state.warnings[-1].startswith("there is no operation 'nothing'")
        assert (await call(source, "shop__slow")).error == "timeout"
        assert "more than 50,000 bytes" in words(await call(source, "shop__huge"))


async def test_an_address_that_is_not_public_is_asked_only_if_the_settings_say_so(tmp_path: Path, shop: Shop):
    shop.asked.clear()
    async with keep_running(settings(tmp_path, shop.url, internal=False), services(SECRETS)) as source:
        rejection = words(await call(source, "shop__picture"))
        assert rejection.startswith("shop__picture was not called: 127.0.0.1 is at an address that is not public. ")
    assert shop.asked == []
    async with keep_running(settings(tmp_path, "http://127.0.0.1:1"), services(SECRETS)) as source:
        rejection = words(await call(source, "shop__picture"))
        assert rejection == "shop__picture was not called: 127.0.0.1 cannot be reached."


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"openapi: 2.0.0", "it is no OpenAPI file of version 3"),
        (b"- 1", "it is no table of names and values"),
        (b"a: &x 1\nb: *x", "aliases such as"),
        (b"\xff", "it is no YAML or JSON"),
    ],
)
def test_a_file_that_is_none_says_why(text: bytes, problem: str):
    with pytest.raises(NotOpenApi, match=problem):
        read_openapi(text)


async def test_a_file_that_is_missing_or_names_no_address_is_a_problem(tmp_path: Path):
    async with keep_running(settings(tmp_path, ""), services(SECRETS)) as source:
        assert source.state.problem == "the file names no address that is whole; give it as server"
    missing_file = settings(tmp_path, "https://example.com", file=tmp_path / "gone.yaml")
    async with keep_running(missing_file, services(SECRETS)) as source:
        assert source.state.problem == "it cannot be read (No such file or directory)"
    async with keep_running(settings(tmp_path, "https://example.com"), services()) as source:
        assert source.state.problem == "Setting secret:SHOP is '(not set)'; set RECTO_SECRET_SHOP for the server"


def test_older_words_become_those_of_json_schema_and_loops_end():
    operations = read_openapi(FILE.encode())
    [item] = [one.schema for one in operations.operations if one.name == "add.item"]
    price: Json = {"type": ["number", "null"], "exclusiveMinimum": 0}
    properties: Json = {"name": {"type": "string", "maxLength": 20}, "price": price, "parent": {}}
    expected = {"type": "object", "properties": properties, "required": ["name"], "additionalProperties": False}
    assert item == expected
