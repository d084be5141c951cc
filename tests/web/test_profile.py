"""Profile page (S6): view, edit, rejected values, delete and export."""

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
DATE = "role=textbox[name=/Date of birth/]"


@pytest.fixture(autouse=True)
def clear_profile(demo: str) -> None:
    data = profile(demo)
    fields: dict[str, Json] = dict.fromkeys(cast("Mapping[str, Json]", data["profile"]))
    skills: dict[str, Json] = dict.fromkeys(cast("Mapping[str, Json]", data["skillData"]))
    change(demo, {**fields, "skill_data": skills})


def profile(url: str) -> Mapping[str, Json]:
    return request(url, "GET", "/api/v1/profile", token=ALICE).json


def change(url: str, patch: Mapping[str, Json]) -> None:
    reply = request(url, "PATCH", "/api/v1/profile?agent=vibe-en", patch, token=ALICE)
    assert reply.status == 200, reply.body


def birth(url: str) -> Mapping[str, Json]:
    return cast("Mapping[str, Mapping[str, Json]]", profile(url)["profile"])["birth_info"]


def open_profile(
    open_page: PageOpener, demo: str, locale: str = "en-US", theme: str = "light", *, phone: bool = False
) -> WebPage:
    page = open_page(demo, at=AT, locale=locale, theme=theme, size=(390, 844) if phone else (1280, 860))
    page.wait(".profile-form")
    return page


@pytest.mark.parametrize(
    ("locale", "theme", "phone", "empty"),
    [("en-US", "light", False, "Your profile is empty."), ("zh-CN", "dark", True, "你的资料还是空的。")],
)
def test_S6_an_empty_profile_explains_itself(
    open_page: PageOpener, demo: str, *, locale: str, theme: str, phone: bool, empty: str
):
    page = open_profile(open_page, demo, locale, theme, phone=phone)
    assert empty in page.texts("main")[0]
    assert "free" in page.texts(".profile-head")[0]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.axe("main") == []


def test_S6_saving_sends_only_the_changed_fields(open_page: PageOpener, demo: str):
    change(
        demo, {"birth_info": {"date": "1990-05-15", "time": "14:30", "place": "Beijing"}, "bicycle": {"kind": "road"}}
    )
    page = open_profile(open_page, demo)
    assert page.value(DATE) == "1990-05-15"
    assert '"kind": "road"' in page.value("role=textbox[name=/bicycle/]")
    change(demo, {"birth_info": {"place": "Bonn"}})
    page.fill("role=textbox[name=/Time of birth/]", "15:00")
    page.click(SAVE)
    page.wait(".toast >> text=Saved")
    assert (birth(demo)["time"], birth(demo)["place"]) == ("15:00", "Bonn")
    page.click(SAVE)
    page.wait(".toast >> text=No changes to save")


def test_S6_a_rejected_value_shows_the_error_at_its_field(open_page: PageOpener, demo: str):
    change(demo, {"birth_info": {"date": "1990-05-15"}})
    page = open_profile(open_page, demo)
    page.fill(DATE, "2990-05-15")
    page.click(SAVE)
    page.wait(".form-error")
    page.wait_until("document.activeElement?.closest('fieldset') !== null")
    assert birth(demo)["date"] == "1990-05-15"
    page.click("text=More options")
    page.fill(DATE, "1990-05-16")
    page.fill("role=spinbutton[name=/Latitude/]", "100")
    page.click(SAVE)
    page.wait("text=Enter 90 or less.")
    assert page.count("[aria-invalid=true]") == 1


def test_S6_a_field_and_skill_data_can_be_deleted_and_restored(open_page: PageOpener, demo: str):
    change(demo, {"birth_info": {"date": "1990-05-15"}, "skill_data": {"bazi": {"chart": 1}}})
    page = open_profile(open_page, demo)
    page.click("role=button[name='Delete Birth information']")
    page.wait("text=Birth information deleted")
    assert profile(demo)["profile"] == {}
    page.click(".profile-skill summary")
    page.click("role=button[name='Delete Bazi']")
    page.wait("text=No skill has saved data about you.")
    assert profile(demo)["skillData"] == {}
    page.run("await page.locator('.toast', {hasText: 'Bazi'}).getByRole('button', {name: 'Undo'}).click()")
    page.wait(".profile-skill >> text=Bazi")
    assert profile(demo)["skillData"] == {"bazi": {"chart": 1}}


def test_S6_the_export_contains_all_data(open_page: PageOpener, demo: str):
    change(demo, {"extracted": ["Likes tea."]})
    page = open_profile(open_page, demo)
    script = """
        const [download] = await Promise.all([
          page.waitForEvent('download'),
          page.getByRole('button', {name: 'Export all data'}).click(),
        ]);
        const chunks = [];
        for await (const chunk of await download.createReadStream()) chunks.push(chunk);
        return [download.suggestedFilename(), Buffer.concat(chunks).toString()];
    """
    name, text = cast("list[str]", page.run(script))
    assert name == "recto-export.ndjson"
    assert "Likes tea." in text
