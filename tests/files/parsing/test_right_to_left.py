"""D6: Arabic and Hebrew lines with Latin words keep their reading order."""

import pytest

from recto.conversation.document import Element
from recto.files.parsing.formats.pdf.pdf_document import order_lines
from tests.files.parsing.a_pdf import unicode_page
from tests.files.parsing.reading import read


def as_drawn(*parts: str) -> str:
    """Return a right-to-left line as it looks from left to right."""
    return " ".join(part if part.isascii() else part[::-1] for part in reversed(parts))


def test_D6_latin_words_in_lines_of_arabic_and_hebrew_stay_where_they_are():
    lines = [
        ("نستخدم برنامج", "LibreOffice Writer 7.4", "لكتابة هذا النص"),
        ("مرحبا بالعالم هذا اختبار",),
        ("שלום עולם", "Python", "זה מבחן"),
    ]
    reading = read(unicode_page(*(as_drawn(*parts) for parts in lines)), "pdf")
    assert reading.texts("paragraph") == ["\n".join(" ".join(parts) for parts in lines)]


@pytest.mark.parametrize(
    ("kind", "xberg_text", "pdfium_text", "read_as"),
    [
        ("heading", "# اليومUSD 120السعر", "السعر 120 USD اليوم", "# السعر 120 USD اليوم"),
        ("paragraph", "peace is سلام and old", "Peace is سلام and old", "peace is سلام and old"),
        ("paragraph", "is سلام and old peace", "peace is سلام and old", "peace is سلام and old"),
        (
            "paragraph",
            "مرحبا Office Microsoft بالعالم",
            "مرحبا Office Microsoft بالعالم",
            "مرحبا Microsoft Office بالعالم",
        ),
        ("paragraph", "other مرحبا", "مرحبا words", "other مرحبا"),
        ("paragraph", "Latin words alone", "مرحبا", "Latin words alone"),
    ],
)
def test_D6_such_a_line_is_pdfiums_where_its_letters_are_the_same(
    kind: str, xberg_text: str, pdfium_text: str, read_as: str
):
    element = Element(kind="heading" if kind == "heading" else "paragraph", text=xberg_text)
    assert [one.text for one in order_lines([element], f"first\n{pdfium_text}\nlast")] == [read_as]
