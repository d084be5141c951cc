"""Signed URLs: each allows reading one file for a while, and any changed byte makes it invalid (P9, P10)."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recto.files.signing import FILES, Signer, SigningKey
from recto.page.prompt.reminder import escape

NOW = datetime(2026, 5, 14, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ID = "0196cd3b-5a6f-7cc3-9f2c-5a7d1e8b9c01"
BASE = "https://recto.example:8443/prefix"
KEY = SigningKey(id="k1", secret=b"a secret of sixteen or more")
OTHER = SigningKey(id="k2", secret=b"another secret, as long as that")
SIGNER = Signer([KEY], lambda: BASE)
URL = SIGNER.url(ID, "报告 final.pdf", LATER)


def test_P9_a_signed_url_and_the_target_of_its_request_stand_for_a_file_until_it_expires():
    assert URL.startswith(f"{BASE}{FILES}{ID}/")
    target = URL.removeprefix(BASE).encode()
    for now, id in ((NOW, ID), (LATER - timedelta(seconds=1), ID), (LATER, None)):
        assert (SIGNER.read_url(URL, now), SIGNER.read_target(target, now)) == (id, id)
    for other in (URL.encode(), target.replace(b"%20", b" "), b"/prefix" + target):
        assert SIGNER.read_target(other, NOW) is None


@pytest.mark.parametrize("change", ["more", "other"])
def test_P9_a_url_with_one_byte_more_less_or_other_is_refused(change: str):
    others = ["", *map(chr, range(256))]
    skipped = 0 if change == "more" else 1
    changed = [URL[:place] + other + URL[place + skipped :] for place in range(len(URL) + 1) for other in others]
    assert [url for url in changed if url != URL and SIGNER.read_url(url, NOW) is not None] == []


@given(st.text() | st.text(alphabet=URL, max_size=len(URL) + 5))
@example("\ud800")
def test_P9_no_text_but_a_signed_url_is_accepted_and_none_breaks_the_reader(text: str):
    assert SIGNER.read_url(text, NOW) is None or text == URL
    assert SIGNER.read_url(URL + text, NOW) is None or text == ""
    assert SIGNER.read_url(f"{BASE}{FILES}{text}", NOW) is None


@given(st.binary() | st.text(alphabet=URL).map(str.encode))
def test_P9_no_bytes_but_a_signed_target_are_accepted(target: bytes):
    assert SIGNER.read_target(target, NOW) is None
    assert SIGNER.read_target(FILES.encode() + target, NOW) is None


def test_P9_a_url_of_another_key_is_refused_even_under_its_id_unless_it_is_from_before_a_rotation():
    stranger = Signer([SigningKey(id=KEY.id, secret=OTHER.secret)], lambda: BASE)
    assert SIGNER.read_url(stranger.url(ID, "a.pdf", LATER), NOW) is None
    assert Signer([OTHER], lambda: BASE).read_url(URL, NOW) is None
    rotated = Signer([OTHER, KEY], lambda: BASE)
    assert rotated.read_url(URL, NOW) == ID
    assert ".k2." in rotated.url(ID, "a.pdf", LATER)


def test_P9_a_url_of_another_server_is_not_ours_and_the_address_is_asked_for_each_time():
    base = ["https://recto.example:8444"]
    signer = Signer([KEY], lambda: base[0])
    assert SIGNER.read_url(signer.url(ID, "a.pdf", LATER), NOW) is None
    base[0] = BASE
    assert SIGNER.read_url(signer.url(ID, "a.pdf", LATER), NOW) == ID


def test_P10_a_page_has_the_same_url_for_a_day_and_it_is_valid_for_one_or_two():
    midnight = NOW.replace(hour=0)
    urls = {SIGNER.page_url(ID, "a.pdf", midnight + timedelta(hours=hour)) for hour in range(24)}
    assert len(urls) == 1
    (url,) = urls
    assert SIGNER.read_url(url, midnight + timedelta(hours=47, minutes=59, seconds=59)) == ID
    assert SIGNER.read_url(url, midnight + timedelta(hours=48)) is None
    assert SIGNER.page_url(ID, "a.pdf", midnight + timedelta(days=1)) != url
    # The day is that of UTC.
    assert SIGNER.page_url(ID, "a.pdf", datetime.fromisoformat("2026-05-15T01:00:00+08:00")) == url


@given(st.text(max_size=300))
def test_P9_F3_any_name_makes_a_short_url_of_plain_characters_that_reads_the_same_in_a_tag(name: str):
    url = SIGNER.url(ID, name, LATER)
    assert url.isascii()
    assert escape(url) == url
    assert len(urlsplit(url).path.rpartition("/")[2]) <= 100 * 12
    assert SIGNER.read_url(url, NOW) == ID
    # A shortened name keeps its extension.
    assert urlsplit(SIGNER.url(ID, f"{name}{'x' * 200}.docx", LATER)).path.endswith("x.docx")


def test_a_key_does_not_show_its_secret():
    assert "secret" not in repr(KEY)
    assert "k1" in repr(KEY)
    with pytest.raises(ValueError, match="without a key"):
        Signer([], lambda: BASE)
