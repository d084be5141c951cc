"""Public addresses, URL parsing and allowed hosts (D7)."""

from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import FileRefused
from recto.files.fetch.addresses import check_url, follow, is_allowed_host, is_public, read_url
from recto.http.client import DEFAULT_PORTS, TARGET_CHARACTERS

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001::", "64:ff9b::808:808"]
NOT_PUBLIC = {
    "unspecified": ["0.0.0.0", "0.1.2.3", "::"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12::1"],
    "shared": ["100.64.0.1", "100.127.255.255"],
    "loopback": ["127.0.0.1", "127.255.255.254", "::1"],
    "link-local": ["169.254.0.1", "fe80::1", "fe80::1%eth0", "febf::1"],
    "site-local": ["fec0::1"],
    "metadata": ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"],
    "protocols": ["192.0.0.1", "192.88.99.1", "2001:1::1", "2001:20::1"],
    "documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
    "benchmarks": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "255.255.255.255", "4000::1", "e000::1", "5f00::1", "100::1"],
    "v4-mapped": ["::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:808:808"],
    "v4-compatible": ["::127.0.0.1", "::8.8.8.8"],
    "6to4": ["2002:7f00:1::", "2002:808:808::1"],
    "Teredo": ["2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "NAT64": ["64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "64:ff9b:0:1::1"],
    "zone": ["2606:4700::1%1", "2606:4700::1%eth0"],
    "no address": ["", "localhost", "127.1", "0x7f.0.0.1", "010.0.0.1", "2130706433", "1.1.1.1 ", "[::1]", "１.1.1.1"],
}


@pytest.mark.parametrize("kind", NOT_PUBLIC)
def test_D7_only_addresses_of_the_internet_are_public(kind: str):
    assert [address for address in PUBLIC if not is_public(address)] == []
    assert [address for address in NOT_PUBLIC[kind] if is_public(address)] == []


@given(st.ip_addresses())
def test_D7_whatever_python_knows_to_be_private_is_not_public(address: IPv4Address | IPv6Address):
    if is_public(str(address)):
        assert address.is_global
        assert not (address.is_private or address.is_multicast or address.is_reserved or address.is_link_local)


@given(st.ip_addresses(v=4))
def test_D7_an_ipv4_address_inside_another_is_public_at_most_where_it_is_by_itself(address: IPv4Address):
    number = int(address)
    inside = [number, 0xFFFF << 32 | number, 0x2002 << 112 | number << 80, 0x64FF9B << 96 | number]
    networks = [str(IPv6Address(one)) for one in inside]
    assert [is_public(one) for one in networks] == [False, False, False, is_public(str(address))]


# Urls


def sent_target(url: str) -> str:
    """Return path and query as the HTTP client sends them."""
    parts = urlsplit(url)
    return quote(f"{parts.path}{'?' if parts.query else ''}{parts.query}", safe=TARGET_CHARACTERS)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM.:443/A?b=C#d", "https://example.com/A?b=C"),
        ("http://example.com:8080?x", "http://example.com:8080/?x"),
        ("http://1.1.1.1/", "http://1.1.1.1/"),
        ("http://[2606:4700:0::1]:81/a", "http://[2606:4700::1]:81/a"),
        ("https://bücher.example/ä?ö=%41+1", "https://xn--bcher-kva.example/%C3%A4?%C3%B6=%41+1"),
        ("https://a_b.example/%2e%2E/../x", "https://a_b.example/%2e%2E/../x"),
        ('https://example.com/"<>', "https://example.com/%22%3C%3E"),
        ("http://evil.example#@127.0.0.1/", "http://evil.example/"),
        ("http://evil.example/@127.0.0.1", "http://evil.example/@127.0.0.1"),
    ],
)
def test_D7_a_url_has_one_spelling(text: str, url: str):
    assert read_url(text).url == url
    assert read_url(url).url == url
    assert url.endswith(sent_target(url))


@pytest.mark.parametrize(
    "text",
    [
        *("http://2130706433/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/", "http://0x7f000001/"),
        *("http://1.2.3.4.5/", "http://a.0x1/", "http://a.1/", "http://256.1.1.1/", "http://127.0.0.1../"),
        *("http://①②⑦.0.0.1", "http://127。0。0。1/", "http://１２７.0.0.1/", "http://ⓔxample.com/"),
        *("http://ｅxample.com/", "http://example.com\u200b/", "http://\u212a.example/", "http://faß.example/"),
        *("http://BÜCHER.example/", "http://xn--.example/\u0000", "http://ex%61mple.com/", "http://a%00b/"),
        *("http://a@127.0.0.1/", "http://example.com:80@127.0.0.1/", "http://user:word@example.com/", "http://@a/"),
        *("http:\\\\example.com", "http://example.com\\@127.0.0.1/", "http://exa\tmple.com/", "http://a/\nb"),
        *(" http://example.com", "http://example.com ", "http://example.com/a b", "http://a/\x7f", "http://a/\x85"),
        *("file:///etc/passwd", "gopher://a/", "data:text/plain,x", "ftp://a/", "javascript:x", "recto-attachment:1"),
        *("", "example.com", "//example.com/", "/a", "http:", "http:/a", "http:a", "http://", "http:///a", "http://?a"),
        *("http://[::1", "http://::1/", "http://[::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[1.1.1.1]/"),
        *("http://a:0/", "http://a:65536/", "http://a:-1/", "http://a:/", "http://a:８０/", "http://a:80:80/"),
        *("http://a..b/", "http://.a/", "http://-a/", "http://a-/", f"http://{'a' * 64}/", f"http://{'a.' * 127}a/"),
        *("http://a/\ud800", "http://\ud800/", f"http://a/{'x' * 4_000}", "http://*/", "http://a,b/", "http://./"),
    ],
)
def test_D7_a_url_that_could_be_read_in_two_ways_is_refused(text: str):
    with pytest.raises(FileRefused, match="its url cannot be used: ") as error:
        read_url(text)
    assert error.value.code == "bad_url"


@given(st.text(alphabet=st.sampled_from("htps:/\\@[]#?.%-_a1x0 \tü①。\u200b\ud800"), max_size=30))
def test_D7_any_text_is_a_url_of_one_spelling_or_is_refused(text: str):
    for whole in (text, f"http://{text}"):
        try:
            url = read_url(whole)
        except FileRefused:
            continue
        again = urlsplit(url.url)
        port = again.port or DEFAULT_PORTS[again.scheme]
        assert (again.scheme, again.hostname, port) == (url.scheme, url.host, url.port)
        assert url.url.endswith(sent_target(url.url))
        assert read_url(url.url) == url


def test_D7_a_redirect_may_be_relative_and_may_not_leave_https():
    at = read_url("https://example.com/a/b?c")
    assert follow(at, "../d").url == "https://example.com/d"
    assert follow(at, "//other.example/").url == "https://other.example/"
    assert follow(read_url("http://example.com/"), "https://example.com/").scheme == "https"
    insecure, others = (
        "http://example.com/",
        ("file:///a", "data:,a", "/\\other.example", "https://a@b/", "/a\r\nb", " /a"),
    )
    for location in (insecure, *others):
        with pytest.raises(FileRefused):
            follow(at, location)


# Hosts


@pytest.mark.parametrize(
    ("pattern", "allowed", "refused_hosts"),
    [
        ("example.com", ("https://example.com/", "http://EXAMPLE.com./"), ("https://www.example.com/",)),
        ("example.com", (), ("https://notexample.com/", "https://example.com.evil.example/", "https://еxample.com/")),
        ("example.com", (), ("https://example.com:8443/", "http://example.com:443/")),
        ("Example.com", ("https://example.com/",), ()),
        ("xn--xample-2of.com", ("https://еxample.com/",), ()),
        ("example.com:8443", ("https://example.com:8443/",), ("https://example.com/",)),
        ("*.example.com", ("https://a.example.com/", "https://b.a.example.com/"), ("https://example.com/",)),
        *(("*.example.com", (), ("https://evilexample.com/",)), ("*.1.1", (), ("http://1.1.1.1/",))),
        ("1.1.1.1", ("http://1.1.1.1/",), ()),
        ("*", ("https://any.example/", "http://[2606:4700::1]/"), ("https://any.example:8443/",)),
        ("*:8443", ("https://any.example:8443/",), ()),
    ],
)
def test_D7_patterns_say_which_hosts_and_ports_are_allowed(
    pattern: str, allowed: tuple[str, ...], refused_hosts: tuple[str, ...]
):
    for text in (*allowed, *refused_hosts):
        url = read_url(text)
        assert is_allowed_host(url.host, url.port, url.scheme, ["none.example", pattern]) is (text in allowed)
        assert not is_allowed_host(url.host, url.port, url.scheme, [])


@pytest.mark.parametrize("host", ["ⓔxample.com", "ｅxample.com", "a b", "", "127.1", "example.com..", "example。com"])
def test_D7_a_host_that_is_no_name_is_not_allowed_by_anything(host: str):
    assert not is_allowed_host(host, 443, "https", ["*", "example.com"])


def test_D7_the_server_itself_is_no_other_host():
    own = "https://recto.example/base"
    for url in ("https://recto.example/a", "http://RECTO.example./", "https://recto.example:443/"):
        with pytest.raises(FileRefused, match="is this server"):
            check_url(url, ["*"], own)
    assert check_url("https://recto.example:8443/", ["*:8443"], own)
    with pytest.raises(FileRefused, match="is this server"):
        check_url("http://recto.example:8787/", ["*:8787"], "http://recto.example:8787")
