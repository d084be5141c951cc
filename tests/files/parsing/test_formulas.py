"""D6: formulas of a docx stand in their sentences."""

from tests.files.parsing.hostile import OFFICE, WORD, docx
from tests.files.parsing.office import relations
from tests.files.parsing.reading import read

MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def letter(*paragraphs: str) -> bytes:
    level = '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1)"/></w:lvl>'
    numbered = f'<w:abstractNum w:abstractNumId="0">{level}</w:abstractNum>'
    numbered += '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    parts = {
        "word/numbering.xml": f'<w:numbering xmlns:w="{WORD}">{numbered}</w:numbering>',
        "word/_rels/document.xml.rels": relations(l1="https://e.example/").replace("/x", "/hyperlink"),
    }
    return docx("".join(paragraphs), parts=parts)


def words(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*inner: str) -> str:
    return f"<w:p>{''.join(inner)}</w:p>"


def formula(base: str) -> str:
    def run(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    return f'<m:oMath xmlns:m="{MATH}"><m:sSup><m:e>{run(base)}</m:e><m:sup>{run("2")}</m:sup></m:sSup></m:oMath>'


def test_D6_formulas_stand_in_their_sentences():
    led = f'<w:hyperlink xmlns:r="{OFFICE}" r:id="l1">{words("here")}</w:hyperlink>'
    data = letter(
        paragraph(words("Let "), formula("x"), words(" be more than "), formula("y"), words(".")),
        paragraph(formula("z"), words(" begins, and see "), led),
        paragraph(words("No formula.")),
    )
    assert [one.text for one in read(data, "docx").elements] == [
        "Let $x^{2}$ be more than $y^{2}$.",
        "$z^{2}$ begins, and see [here](https://e.example/)",
        "No formula.",
    ]


def test_D6_formulas_with_lines_of_their_own_keep_them():
    data = letter(
        paragraph(words("Then")),
        paragraph(f"<m:oMathPara xmlns:m='{MATH}'>{formula('x')}</m:oMathPara>"),
        paragraph(formula("y")),
        paragraph(words("and "), formula("z")),
    )
    assert [one.text for one in read(data, "docx").elements] == ["Then", "$$x^{2}$$", "$$y^{2}$$", "and $z^{2}$"]


def test_D6_formulas_in_cells_and_items_stay_there():
    cells = "".join(f"<w:tc>{one}</w:tc>" for one in (paragraph(words("a "), formula("x")), paragraph(words("b"))))
    listed = '<w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr>'
    items = [paragraph(listed, words("first "), formula("y")), paragraph(listed, words("second"))]
    reading = read(letter(f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>", *items), "docx")
    assert reading.cells() == [("a $x^{2}$", "b")]
    assert reading.texts("item") == ["1) first $y^{2}$", "2) second"]
