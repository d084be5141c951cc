"""D6: encodings are detected, and other bytes are not decoded."""

import bz2
import codecs
import lzma
import random
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recto.files.decode import LONG_BYTES, SAMPLE_BYTES, decode, decode_long, find_declared_encoding, normalize_encoding
from recto.files.file_type import is_text

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


DENSE = ("这是测试文件的内容没有空格", "這是一個測試檔案沒有空格", "これはテストです日本語")
EUROPE = (
    *("naïve", "a naïve approach", "Straße", "façade", "El Niño", "Ångström", "it’s", "10 €", "100 £", FRENCH, ITALIAN),
)


@pytest.mark.parametrize(
    ("encoding", "texts"),
    [
        *((encoding, (CHINESE, JAPANESE, FRENCH, "")) for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32")),
        # Without a mark.
        *((way, (CHINESE, KOREAN, FRENCH, RUSSIAN, TABLE, "hello", *DENSE)) for way in ("utf-16-le", "utf-16-be")),
        *(("utf-16-le", (ARABIC,)), ("gb18030", (CHINESE, TABLE, "你好，世界。", TRADITIONAL)), ("gb2312", (CHINESE,))),
        *(("gbk", (CHINESE * 400, "销售报表")), ("big5", (TRADITIONAL, "你好，世界。"))),
        *((encoding, (JAPANESE,)) for encoding in ("shift_jis", "euc_jp", "iso2022_jp")),
        *((encoding, (KOREAN,)) for encoding in ("euc_kr", "iso2022_kr")),
        *((encoding, (RUSSIAN,)) for encoding in ("cp1251", "koi8_r", "cp866", "iso8859_5")),
        ("cp1251", ("Привет, мир", (RUSSIAN * 3).upper(), "Україна, єдність і воля")),
        *(("koi8_r", ("Привет, мир",)), ("cp1256", (ARABIC,)), ("cp1255", ("שלום עולם זה מבחן",))),
        *(("cp1253", ("Καλημέρα κόσμε, αυτό είναι ένα τεστ",)), ("cp874", ("สวัสดีชาวโลก นี่คือการทดสอบ",))),
        ("cp1250", ("Prosím o zaplacení faktury, děkuji za chuť a čas",)),
        ("cp1252", EUROPE),
    ],
)
def test_D6_a_text_is_read_in_the_encoding_it_is_written_in(encoding: str, texts: tuple[str, ...]):
    assert [decode(text.encode(encoding)) for text in texts] == list(texts)
    assert all(is_text(text.encode(encoding)) for text in texts if text in DENSE)


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [(b"\xfe\xff", "utf-16-be"), (b"\x00\x00\xfe\xff", "utf-32-be"), (b"\x84\x31\x95\x33", "gb18030")],
)
def test_D6_marks_of_the_other_order_and_of_gb18030_are_known(mark: bytes, encoding: str):
    assert decode(mark + CHINESE.encode(encoding)) == CHINESE


@pytest.mark.parametrize("legacy", ["gb18030", "big5"])
@pytest.mark.parametrize("every", [2, 20])
def test_D6_lines_of_two_encodings_are_read_each_in_its_own(legacy: str, every: int):
    lines = [f"2025-01-01 {number} {TRADITIONAL[:12]} {number}\r\n" for number in range(400)]
    encoded_lines = [line.encode("utf-8" if number % every else legacy) for number, line in enumerate(lines)]
    assert decode(b"".join(encoded_lines)) == "".join(lines)


def test_D6_letters_far_down_in_a_file_are_looked_at():
    text = "name,price\n" * SAMPLE_BYTES + CHINESE
    assert decode(text.encode("gb18030")) == text
    # A sample of it ends in the middle of a character, wherever it begins.
    for shift in range(4):
        one_line = "x" * shift + '{"名":"值"},' * SAMPLE_BYTES
        assert decode(one_line.encode("gb18030")) == one_line
    long_line = "x" * 3 * SAMPLE_BYTES + CHINESE * 4_000
    assert decode(long_line.encode("gb18030")) == long_line


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *((CHINESE, "utf-8"), (CHINESE, "gbk"), (TABLE, "gbk"), (TRADITIONAL, "big5"), (JAPANESE, "cp932")),
        *((JAPANESE, "euc_jp"), (KOREAN, "euc_kr")),
    ],
)
def test_D6_a_bad_byte_and_a_torn_end_cost_no_more_than_their_place(text: str, encoding: str):
    first_part, rest = text[:8], text[8:]
    assert decode(first_part.encode(encoding) + b"\xff" + rest.encode(encoding)) == f"{first_part}\ufffd{rest}"
    whole = text.rstrip(".。\n")
    assert decode(whole.encode(encoding)[:-1]) == whole[:-1] + "\ufffd"
    assert decode(b"a line of words\n" * 20 + b"\0") == "a line of words\n" * 20 + "\ufffd"


@pytest.mark.parametrize(("text", "encoding"), [(CHINESE, "gbk"), (TRADITIONAL, "big5"), (JAPANESE, "euc_jp")])
def test_D6_after_a_byte_that_is_missing_a_line_goes_on_as_it_is(text: str, encoding: str):
    whole = text * 20
    data = whole.encode(encoding)
    for place in range(500, 540):
        decoded = decode(data[:place] + data[place + 1 :]) or ""
        sound = alike(decoded, whole) + alike(decoded[::-1], whole[::-1])
        assert sound >= len(whole) - 8


def alike(one: str, other: str) -> int:
    """Return the number of equal characters at the start of two texts."""
    return next((place for place, both in enumerate(zip(one, other, strict=False)) if len({*both}) > 1), len(one))


@pytest.mark.parametrize("length", range(6, 24))
def test_D6_a_short_beginning_in_gbk_is_not_cyrillic(length: int):
    decoded = decode(CHINESE.encode("gbk")[:length])
    assert decoded == CHINESE[: length // 2] + "\ufffd" * (length % 2)


@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
        b"PK\x03\x04\x14\0\0\0\x08\0" + zlib.compress(CHINESE.encode() * 9),
        *(bz2.compress(CHINESE.encode() * 9), lzma.compress(CHINESE.encode() * 9)),
        *(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 512, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01"),
        *(b"\x7fELF\x02\x01\x01" + b"\0" * 60, b"\0" * 100, bytes(range(256)), zlib.compress(CHINESE.encode() * 100)),
    ],
)
def test_D6_bytes_of_other_formats_are_no_text(data: bytes):
    assert decode(data) is None


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="gb2312">', "gb18030"),
        ("<META http-equiv='Content-Type' content='text/html; charset=Big5'>", "big5"),
        *(('<?xml version="1.0" encoding="Shift_JIS"?>', "cp932"), ("<meta charset=windows-1251>", "cp1251")),
        *(("<meta charset=utf-16>", ""), ("<meta charset=klingon>", ""), ("charset=gb2312", "")),
    ],
)
def test_D6_an_encoding_is_taken_from_where_a_page_declares_it(head: str, encoding: str):
    assert find_declared_encoding(head.encode() + CHINESE.encode("gb18030")) == encoding
    # Many pages declare one and are in UTF-8.
    assert decode(CHINESE.encode(), encoding) == CHINESE


HEADS = (
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff\xe0",
    b"MZ\x90\0",
    b"\x7fELF\x02\x01\x01\0",
    b"GIF89a",
    b"PK\x03\x04",
    b"",
)


@given(head=st.sampled_from(HEADS), seed=st.integers(0, 2**32), size=st.integers(200, 5_000))
def test_D6_no_random_bytes_are_taken_for_a_text(head: bytes, seed: int, size: int):
    assert decode(head + random.Random(seed).randbytes(size)) is None


@pytest.mark.parametrize("name", ["base64", "zlib", "punycode", "undefined", "utf-16", "klingon", "a\0b", ""])
def test_D6_what_is_no_encoding_of_text_is_none(name: str):
    assert normalize_encoding(name) == ""


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
        *(b"short", "好的 ".encode("gb18030") * (LONG_BYTES // 5 + 1), b"words " * (LONG_BYTES // 6 + 1) + b"\xff"),
        *(b"words\0" * (LONG_BYTES // 6 + 1), b"\x01\x02\x03 " * (LONG_BYTES // 4 + 1)),
        b"%PDF-" * (LONG_BYTES // 5 + 1),
    ],
)
def test_D6_what_is_short_or_not_plainly_utf_8_is_left_to_the_usual_way(data: bytes):
    assert decode_long(data) is None
