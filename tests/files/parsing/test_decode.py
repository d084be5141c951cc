"""D6: encodings are detected, and bytes that are no text are not taken for any."""

import bz2
import codecs
import lzma
import random
import struct
import zipfile
import zlib
from io import BytesIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recto.files.encoding.decode import LONG_BYTES, SAMPLE_BYTES, declared_encoding, decode, decode_long, known_encoding
from recto.files.types.signatures import is_text

CHINESE = "这是一个测试文件，用来检查编码识别是否正确。\n第二行：价格 12.50 元。\n"
TRADITIONAL = "這是一個測試檔案，用來檢查編碼識別是否正確。\n第二行：價格 12.50 元。\n"
JAPANESE = "これはテストです。日本語の文字コードを判定します。\n価格は1200円。\n"
KOREAN = "이것은 테스트 파일입니다. 인코딩을 확인합니다."
FRENCH = "Le café est fermé à midi. Où êtes-vous ?"
TABLE = "姓名,年龄,城市\n张三,25,北京\n李四,30,上海\n"
PLAIN = "a,b\n1,2\n"
RUSSIAN = "Это проверка.\nВторая строка.\n"
ARABIC = "مرحبا بالعالم هذا اختبار"
ITALIAN = "Perché è così, la città è più bella."
WORDS = ("the", "quick", "brown", "fox", "jumps", "12.50", "over", "你好", "and", "a", "café\n")


@pytest.mark.parametrize("text", [CHINESE, TRADITIONAL, JAPANESE, FRENCH, "plain", ""])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_D6_utf8_and_text_with_a_mark_are_read_without_it(text: str, encoding: str):
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("mark", [b"\xfe\xff", b"\x00\x00\xfe\xff", b"\x84\x31\x95\x33"])
def test_D6_marks_of_the_other_order_and_of_gb18030_are_known(mark: bytes):
    encoding = {2: "utf-16-be", 4: "gb18030" if mark[0] else "utf-32-be"}[len(mark)]
    assert decode(mark + CHINESE.encode(encoding)) == CHINESE


@pytest.mark.parametrize("text", [CHINESE, TRADITIONAL, JAPANESE, KOREAN, FRENCH, RUSSIAN, TABLE, PLAIN, "hello"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_D6_utf16_without_a_mark_is_told_by_what_it_says(text: str, encoding: str):
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "gb18030"),
        (CHINESE, "gb2312"),
        (CHINESE * 400, "gbk"),
        (TABLE, "gb18030"),
        ("你好，世界。", "gb18030"),
        ("销售报表", "gbk"),
        (TRADITIONAL, "gb18030"),
        (TRADITIONAL, "big5"),
        ("你好，世界。", "big5"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (KOREAN, "euc_kr"),
        (FRENCH, "cp1252"),
    ],
)
def test_D6_what_is_no_unicode_is_told_by_its_letters(text: str, encoding: str):
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *((RUSSIAN, encoding) for encoding in ("cp1251", "koi8_r", "cp866", "iso8859_5")),
        ("Привет, мир", "cp1251"),
        ("Привет, мир", "koi8_r"),
        ((RUSSIAN * 3).upper(), "cp1251"),
        ("Україна, єдність і воля", "cp1251"),
        (ARABIC, "cp1256"),
        ("שלום עולם זה מבחן", "cp1255"),
        ("Καλημέρα κόσμε, αυτό είναι ένα τεστ", "cp1253"),
        ("สวัสดีชาวโลก นี่คือการทดสอบ", "cp874"),
        ("Prosím o zaplacení faktury, děkuji za chuť a čas", "cp1250"),
        # Letters that are common in Russian, and yet are not.
        (ITALIAN, "cp1252"),
    ],
)
def test_D6_other_alphabets_are_told_by_their_commonest_letters(text: str, encoding: str):
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("text", ["这是测试文件的内容没有空格", "這是一個測試檔案沒有空格", "これはテストです日本語"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_D6_utf16_without_mark_blank_or_line_end_is_told_by_everyday_characters(text: str, encoding: str):
    assert decode(text.encode(encoding)) == text
    assert is_text(text.encode(encoding))


def test_D6_utf16_of_other_alphabets_needs_no_mark():
    assert decode(ARABIC.encode("utf-16-le")) == ARABIC


@pytest.mark.parametrize(("text", "encoding"), [(JAPANESE, "iso2022_jp"), (KOREAN, "iso2022_kr")])
def test_D6_encodings_that_write_in_ascii_are_known_by_their_escapes(text: str, encoding: str):
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("legacy", ["gb18030", "big5"])
@pytest.mark.parametrize("every", [2, 20])
def test_D6_lines_of_two_encodings_are_read_each_in_its_own(legacy: str, every: int):
    lines = [f"2025-01-01 {number} {TRADITIONAL[:12]} {number}\r\n" for number in range(400)]
    written = [line.encode("utf-8" if number % every else legacy) for number, line in enumerate(lines)]
    assert decode(b"".join(written)) == "".join(lines)


def test_D6_letters_far_down_in_a_file_are_looked_at():
    text = "name,price\n" * SAMPLE_BYTES + CHINESE
    assert decode(text.encode("gb18030")) == text
    # A sample of it ends in the middle of a character, wherever it begins.
    for shift in range(4):
        one_line = "x" * shift + '{"名":"值"},' * SAMPLE_BYTES
        assert decode(one_line.encode("gb18030")) == one_line
    long_line = "x" * 3 * SAMPLE_BYTES + CHINESE * 4_000
    assert decode(long_line.encode("gb18030")) == long_line


def test_D6_a_damaged_text_is_read_but_for_what_is_damaged():
    assert decode((CHINESE * 20).encode()[:-2]) == (CHINESE * 20)[:-2] + "\ufffd"
    broken = (CHINESE * 20).encode() + b"\xff" + b"more"
    assert decode(broken) == CHINESE * 20 + "\ufffdmore"
    assert decode((CHINESE * 2_000).encode("gb18030") + b"\xff") == CHINESE * 2_000 + "\ufffd"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CHINESE, "utf-8"),
        (CHINESE, "gbk"),
        (TABLE, "gbk"),
        (TRADITIONAL, "big5"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (KOREAN, "euc_kr"),
    ],
)
def test_D6_a_bad_byte_and_a_torn_end_cost_no_more_than_their_place(text: str, encoding: str):
    begun, rest = text[:8], text[8:]
    assert decode(begun.encode(encoding) + b"\xff" + rest.encode(encoding)) == f"{begun}\ufffd{rest}"
    whole = text.rstrip(".。\n")
    assert decode(whole.encode(encoding)[:-1]) == whole[:-1] + "\ufffd"


@pytest.mark.parametrize(("text", "encoding"), [(CHINESE, "gbk"), (TRADITIONAL, "big5"), (JAPANESE, "euc_jp")])
def test_D6_after_a_byte_that_is_missing_a_line_goes_on_as_it_is(text: str, encoding: str):
    whole = text * 20
    data = whole.encode(encoding)
    for place in range(500, 540):
        found = decode(data[:place] + data[place + 1 :]) or ""
        sound = alike(found, whole) + alike(found[::-1], whole[::-1])
        assert sound >= len(whole) - 8


def alike(one: str, other: str) -> int:
    """How many characters are the same before one is not."""
    return next((place for place, both in enumerate(zip(one, other, strict=False)) if len({*both}) > 1), len(one))


def test_D6_a_line_is_not_mended_for_ever():
    lost = CHINESE.encode("gbk")[:19] + b"\n"
    data = CHINESE.encode("gbk") * 40_000 + lost * 2_000
    found = decode(data) or ""
    assert found.startswith(CHINESE)
    assert found.count("\ufffd") == 2_000


@pytest.mark.parametrize("length", range(6, 24))
def test_D6_a_short_beginning_in_gbk_is_not_cyrillic(length: int):
    found = decode(CHINESE.encode("gbk")[:length])
    assert found == CHINESE[: length // 2] + "\ufffd" * (length % 2)


@pytest.mark.parametrize(
    "text",
    ["naïve", "a naïve approach", "café", "Straße", "über", "façade", "El Niño", "Ångström", "it’s", "10 €", "100 £"],
)
def test_D6_a_word_of_europe_among_ascii_is_not_chinese(text: str):
    assert decode(text.encode("cp1252")) == text


def test_D6_a_stray_nul_does_not_stay_in_a_text():
    assert decode(b"a line of words\n" * 20 + b"\0") == "a line of words\n" * 20 + "\ufffd"


@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
        b"PK\x03\x04\x14\0\0\0\x08\0" + zlib.compress(CHINESE.encode() * 9),
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 512,
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01",
        b"\x7fELF\x02\x01\x01" + b"\0" * 60,
        b"\0" * 100,
        bytes(range(256)),
        zlib.compress(CHINESE.encode() * 100),
    ],
)
def test_D6_bytes_of_other_formats_are_no_text(data: bytes):
    assert decode(data) is None


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="gb2312">', "gb18030"),
        ("<META http-equiv='Content-Type' content='text/html; charset=Big5'>", "big5"),
        ('<?xml version="1.0" encoding="Shift_JIS"?>', "cp932"),
        ("<meta charset=windows-1251>", "cp1251"),
        ("<meta charset=utf-16>", ""),
        ("<meta charset=klingon>", ""),
        ("charset=gb2312", ""),
    ],
)
def test_D6_an_encoding_is_taken_from_where_a_page_declares_it(head: str, encoding: str):
    assert declared_encoding(head.encode() + CHINESE.encode("gb18030")) == encoding


def test_D6_a_declared_encoding_decides_where_letters_do_not():
    assert decode(RUSSIAN.encode("cp1251"), "cp1251") == RUSSIAN
    # Many pages declare one and are in UTF-8.
    assert decode(CHINESE.encode(), "gb18030") == CHINESE
    assert decode(CHINESE.encode("utf-16"), "gb18030") == CHINESE


def test_D6_noise_is_no_text():
    noise = random.Random(7)
    for size in (50, 500, 5_000, 50_000):
        assert decode(noise.randbytes(size)) is None


PACKERS = (zlib.compress, bz2.compress, lzma.compress)
HEADS = (
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff\xe0",
    b"MZ\x90\0",
    b"\x7fELF\x02\x01\x01\0",
    b"GIF89a",
    b"PK\x03\x04",
    b"",
)


def zipped(text: str) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", text)
    return out.getvalue()


@pytest.mark.full
@given(words=st.lists(st.sampled_from(WORDS), min_size=60, max_size=300))
def test_D6_no_packed_text_is_taken_for_a_text(words: list[str]):
    packed = [packer(" ".join(words).encode()) for packer in PACKERS]
    assert [decode(data) for data in (*packed, zipped(" ".join(words)))] == [None] * 4


@given(head=st.sampled_from(HEADS), seed=st.integers(0, 2**32), size=st.integers(200, 5_000))
def test_D6_no_random_bytes_are_taken_for_a_text(head: bytes, seed: int, size: int):
    assert decode(head + random.Random(seed).randbytes(size)) is None


@pytest.mark.full
@given(seed=st.integers(0, 2**32), size=st.integers(100, 400))
def test_D6_no_list_of_numbers_is_taken_for_a_text(seed: int, size: int):
    # By chance: numbers can be chosen that are letters to anybody.
    numbers = random.Random(seed).sample(range(2_000), size)
    assert decode(struct.pack(f"<{len(numbers)}H", *numbers)) is None
    assert decode(struct.pack(f"<{len(numbers)}I", *numbers)) is None


@pytest.mark.parametrize("name", ["base64", "zlib", "punycode", "undefined", "utf-16", "klingon", "a\0b", ""])
def test_D6_what_is_no_encoding_of_text_is_none(name: str):
    assert known_encoding(name) == ""


@given(text=st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Co", "Cn")), max_size=200))
@example("\u0301")
def test_D6_every_text_in_utf8_is_read_as_it_is(text: str):
    assert decode(text.encode()) == text.removeprefix("\ufeff")


@given(data=st.binary(max_size=300))
def test_D6_any_bytes_are_a_text_with_a_utf8_form_or_none(data: bytes):
    text = decode(data)
    assert text is None or "\0" not in text.encode().decode()


# Long texts


@pytest.mark.parametrize("text", ["plain words\n", "über 好 😀\n", "no line ends "])
def test_D6_a_long_text_in_utf_8_is_decoded_a_part_at_a_time_and_the_same(text: str):
    data = (text * (LONG_BYTES // len(text.encode()) + 1)).encode()
    for one in (data, codecs.BOM_UTF8 + data):
        parts = list(decode_long(one) or ())
        assert len(parts) > 8
        assert "".join(parts) == decode(one)


@pytest.mark.parametrize(
    "data",
    [
        b"short",
        "好的 ".encode("gb18030") * (LONG_BYTES // 5 + 1),
        b"words " * (LONG_BYTES // 6 + 1) + b"\xff",
        b"words\0" * (LONG_BYTES // 6 + 1),
        b"\x01\x02\x03 " * (LONG_BYTES // 4 + 1),
        b"%PDF-" * (LONG_BYTES // 5 + 1),
    ],
)
def test_D6_what_is_short_or_not_plainly_utf_8_is_left_to_the_usual_way(data: bytes):
    assert decode_long(data) is None
