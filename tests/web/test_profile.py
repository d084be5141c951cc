"""The profile as a page: read, changed, refused, forgotten, and taken along (S6)."""

from collections.abc import Mapping
from typing import cast

import pytest

from recto.conversation.json import Json
from tests.api.scripted_server import ALICE
from tests.support.client import request
from tests.web.page import PageOpener, WebPage

pytestmark = pytest.mark.full
AT = "#/profile"
SAVE = "role=button[name='Save']"


@pytest.fixture(autouse=True)
def nothing_kept(demo: str) -> None:
    kept = profile(demo)
    forgotten: dict[str, Json] = dict.fromkeys(cast("Mapping[str, Json]", kept["profile"]))
    skills: dict[str, Json] = dict.fromkeys(cast("Mapping[str, Json]", kept["skillData"]))
    change(demo, {**forgotten, "skill_data": skills})


def profile(url: str) -> Mapping[str, Json]:
    return request(url, "GET", "/api/v1/profile", token=ALICE).json


def change(url: str, patch: Mapping[str, Json]) -> None:
    reply = request(url, "PATCH", "/api/v1/profile?agent=vibe-en", patch, token=ALICE)
    assert reply.status == 200, reply.body


def birth(url: str) -> Mapping[str, Json]:
    return cast("Mapping[str, Mapping[str, Json]]", profile(url)["profile"])["birth_info"]


def opened(
    open_page: PageOpener, demo: str, locale: str = "en-US", theme: str = "light", *, phone: bool = False
) -> WebPage:
    page = open_page(demo, at=AT, locale=locale, theme=theme, size=(390, 844) if phone else (1280, 860))
    page.wait(".profile-form")
    return page


@pytest.mark.parametrize(
    ("locale", "theme", "phone", "empty"),
    [("en-US", "light", False, "Nothing is kept of you yet."), ("zh-CN", "dark", True, "还没有保存你的任何资料。")],
)
def test_S6_an_empty_profile_says_how_it_fills(
    open_page: PageOpener, demo: str, *, locale: str, theme: str, phone: bool, empty: str
):
    page = opened(open_page, demo, locale, theme, phone=phone)
    assert empty in page.texts("main")[0]
    assert "free" in page.texts(".profile-head")[0]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.axe("main") == []


def test_S6_what_is_kept_is_read_and_only_what_changed_is_saved(open_page: PageOpener, demo: str):
    change(
        demo, {"birth_info": {"date": "1990-05-15", "time": "14:30", "place": "Beijing"}, "bicycle": {"kind": "road"}}
    )
    page = opened(open_page, demo)
    assert page.value("input[type=date]") == "1990-05-15"
    assert '"kind": "road"' in page.value("role=textbox[name=/bicycle/]")
    change(demo, {"birth_info": {"place": "Bonn"}})
    page.fill("input[type=time]", "15:00")
    page.click(SAVE)
    page.wait(".notice >> text=Saved.")
    assert (birth(demo)["time"], birth(demo)["place"]) == ("15:00", "Bonn")
    page.click(SAVE)
    page.wait(".notice >> text=Nothing has changed.")


def test_S6_a_value_that_is_refused_is_told_at_its_field(open_page: PageOpener, demo: str):
    change(demo, {"birth_info": {"date": "1990-05-15"}})
    page = opened(open_page, demo)
    page.fill("input[type=date]", "2990-05-15")
    page.click(SAVE)
    page.wait(".form-wrong")
    page.wait_until("document.activeElement?.type === 'date' || document.activeElement?.closest('fieldset') !== null")
    assert birth(demo)["date"] == "1990-05-15"
    page.click("text=More details")
    page.fill("input[type=date]", "1990-05-16")
    page.fill("role=spinbutton[name=/Latitude/]", "100")
    page.click(SAVE)
    page.wait("text=90 or less.")
    assert page.count("[aria-invalid=true]") == 1


def test_S6_a_field_and_what_a_skill_keeps_are_forgotten_with_a_way_back(open_page: PageOpener, demo: str):
    change(demo, {"birth_info": {"date": "1990-05-15"}, "skill_data": {"bazi": {"chart": 1}}})
    page = opened(open_page, demo)
    page.click("role=button[name='Forget: Birth information']")
    page.wait("text=Birth information: forgotten.")
    assert profile(demo)["profile"] == {}
    page.click("details >> text=Bazi")
    page.click("role=button[name='Forget: Bazi']")
    page.wait("text=No skill keeps anything of you.")
    assert profile(demo)["skillData"] == {}
    page.run("await page.locator('.notice', {hasText: 'Bazi'}).getByRole('button', {name: 'Undo'}).click()")
    page.wait("details >> text=Bazi")
    assert profile(demo)["skillData"] == {"bazi": {"chart": 1}}


def test_S6_everything_is_exported_with_the_credential_of_the_page(open_page: PageOpener, demo: str):
    change(demo, {"extracted": ["Likes tea."]})
    page = opened(open_page, demo)
    script = """
        const [download] = await Promise.all([
          page.waitForEvent('download'),
          page.getByRole('button', {name: 'Export everything'}).click(),
        ]);
        const chunks = [];
        for await (const chunk of await download.createReadStream()) chunks.push(chunk);
        return [download.suggestedFilename(), Buffer.concat(chunks).toString()];
    """
    name, text = cast("list[str]", page.run(script))
    assert name == "recto-export.ndjson"
    assert "Likes tea." in text
