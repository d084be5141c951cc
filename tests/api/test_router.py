"""Who answers a request: by its path and its method, with parameters that are what they may be."""

from pathlib import Path
from typing import Annotated

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from recto.api.route import Route, in_header, in_path, in_query
from recto.errors import NotFound, RectoError
from tests.api.local_api import local_api

ONE, LIST = "/things/{id}", "/things"


async def show(
    request: Request,
    id: Annotated[str, in_path("Which.")],
    *,
    many: Annotated[int, in_query("How many.", ge=1, le=9)] = 3,
    name: Annotated[str | None, in_query("A name.", alias="theName", max_length=4)] = None,
    raw: Annotated[bool, in_query("As it is.")] = False,
    if_named: Annotated[str | None, in_header("A header.")] = None,
) -> Response:
    del request
    return PlainTextResponse(repr((id, many, name, raw, if_named)))


async def fail(request: Request) -> Response:
    if request.query_params.get("known"):
        raise NotFound(what="thing", id="x")
    raise RectoError("nothing for clients")


ROUTES = (
    Route(method="GET", path=ONE, handler=show, tag="things"),
    Route(method="DELETE", path=ONE, handler=show, tag="things"),
    Route(method="GET", path=LIST, handler=fail, tag="things", is_open=True),
)


@pytest.mark.parametrize(
    ("target", "headers", "expected"),
    [
        ("/things/a", {}, ("a", 3, None, False, None)),
        ("/things/a%2Fb%20c?many=9&theName=four&raw=yes", {}, ("a/b c", 9, "four", True, None)),
        ("/things/a?many=1&many=2&name=other", {"If-Named": "x"}, ("a", 2, None, False, "x")),
        ("/things/%61?theName=", {}, ("a", 3, "", False, None)),
    ],
)
async def test_a_handler_gets_its_parameters_by_name_and_type(
    tmp_path: Path, target: str, headers: dict[str, str], expected: tuple[object, ...]
):
    async with local_api(tmp_path, ROUTES) as api:
        answer = await api.send("GET", target, headers={name.lower(): value for name, value in headers.items()})
    assert (answer.status, answer.body.decode()) == (200, repr(expected))


async def test_all_parameters_that_are_wrong_are_told_at_once(tmp_path: Path):
    async with local_api(tmp_path, ROUTES) as api:
        answer = await api.send("GET", "/things/a?many=ten&theName=longer&raw=perhaps")
    problems = {str(row["field"]): str(row["problem"]) for row in answer.rows("errors")}
    assert (answer.status, list(problems)) == (422, ["many", "theName", "raw"])
    assert problems["many"] == "Input should be a valid integer, unable to parse string as an integer"
    assert problems["theName"] == "String should have at most 4 characters"
    assert answer.json["detail"] == "; ".join(f"{name}: {problem}" for name, problem in problems.items())


@pytest.mark.parametrize(("path", "other"), [("/things/", "/things"), ("/things/a/", "/things/a")])
async def test_an_address_with_a_slash_at_its_end_leads_on_to_the_one_without(tmp_path: Path, path: str, other: str):
    async with local_api(tmp_path, ROUTES) as api:
        answer = await api.send("GET", path)
    assert answer.status == 307
    assert answer.headers["location"].endswith(f"localhost{other}")


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("PUT", "/things/a", 405, "DELETE, GET, OPTIONS"),
        ("OPTIONS", "/things", 204, "GET, HEAD, OPTIONS"),
        ("HEAD", "/things/a", 405, "DELETE, GET, OPTIONS"),
        ("OPTIONS", "/nothing", 404, None),
        ("GET", "/things/a/b", 404, None),
    ],
)
async def test_a_method_nobody_answers_is_told_which_there_are(
    tmp_path: Path, method: str, path: str, status: int, allow: str | None
):
    async with local_api(tmp_path, ROUTES) as api:
        answer = await api.send(method, path)
    assert (answer.status, answer.headers.get("allow")) == (status, allow)


async def test_an_error_of_ours_is_a_problem_and_one_that_clients_should_not_read_goes_on(tmp_path: Path):
    async with local_api(tmp_path, ROUTES) as api:
        assert (await api.send("GET", "/things?known=1")).status == 404
        with pytest.raises(RectoError, match="nothing for clients"):
            await api.send("GET", "/things")
