"""D6: encodings are detected, and bytes that are no text are not taken for any."""

import random
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recto.files.parsing.decode import SAMPLE_BYTES, declared_encoding, decode

CHINESE = "这是一个测试文件，用来检查编码识别是否正确。\n第二行：价格 12.50 元。\n"
TRADITIONAL = "這是一個測試檔案，用來檢查編碼識別是否正確。\n第二行：價格 12.50 元。\n"
JAPANESE = "これはテストです。日本語の文字コードを判定します。\n価格は1200円。\n"
KOREAN = "이것은 테스트 파일입니다. 인코딩을 확인합니다."
FRENCH = "Le café est fermé à midi. Où êtes-vous ?"
TABLE = "姓名,年龄,城市\n张三,25,北京\n李四,30,上海\n"
PLAIN = "a,b\n1,2\n"
RUSSIAN = "Это проверка.\nВторая строка.\n"


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


@given(text=st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Co", "Cn")), max_size=200))
@example("\u0301")
def test_D6_every_text_in_utf8_is_read_as_it_is(text: str):
    assert decode(text.encode()) == text.removeprefix("\ufeff")


@given(data=st.binary(max_size=300))
def test_D6_any_bytes_are_a_text_with_a_utf8_form_or_none(data: bytes):
    text = decode(data)
    assert text is None or "\0" not in text.encode().decode()
