"""P9, D2: where urls of files lead, and whether a provider can reach them."""

import pytest

from recto.app.filing import Address, can_be_reached, upload_rules
from recto.cli.server_settings import ServerSettings


@pytest.mark.parametrize(
    ("settings", "listening", "url"),
    [
        (ServerSettings(), "http://127.0.0.1:8787", "http://127.0.0.1:8787"),
        (ServerSettings(port=0), "http://127.0.0.1:4711", "http://127.0.0.1:4711"),
        (ServerSettings(host="::1", port=0), "http://[::1]:4711", "http://[::1]:4711"),
        (ServerSettings(host="0.0.0.0"), "http://0.0.0.0:8787", "http://127.0.0.1:8787"),
        (ServerSettings(public_url="https://recto.example/"), "http://127.0.0.1:8787", "https://recto.example"),
        (ServerSettings(public_url="https://a.example/b", port=0), "http://127.0.0.1:1", "https://a.example/b"),
    ],
)
def test_P9_urls_lead_to_the_public_address_or_the_one_that_is_listened_on(
    settings: ServerSettings, listening: str, url: str
):
    address = Address.of(settings)
    address.learn(settings, listening)
    assert address.url == url


@pytest.mark.parametrize(
    ("settings", "reached"),
    [
        (ServerSettings(), False),
        (ServerSettings(public_url="https://recto.example"), True),
        (ServerSettings(public_url="http://localhost:9000"), False),
        (ServerSettings(public_url="http://127.0.0.1:9000"), False),
        (ServerSettings(public_url="http://[::1]:9000"), False),
        (ServerSettings(public_url="https://recto.example", image_urls=False), False),
        (ServerSettings(image_urls=True), True),
    ],
)
def test_D2_pictures_go_by_url_only_where_a_provider_can_come_for_them(settings: ServerSettings, reached: bool):
    assert can_be_reached(settings) is reached


def test_P9_limits_of_uploads_come_from_the_settings():
    rules = upload_rules(ServerSettings(uploads=1, user_uploads=2, upload_files=3, upload_bytes=4, upload_seconds=5))
    assert (rules.at_once, rules.of_user, rules.files, rules.upload_bytes, rules.seconds) == (1, 2, 3, 4, 5)
