"""D6: formulas of a docx stay in their sentences."""

from tests.files.parsing.hostile import OFFICE, docx
from tests.files.parsing.office import relations
from tests.files.parsing.reading import read

MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def letter(*paragraphs: str) -> bytes:
    related = relations(l1="https://e.example/").replace("/x", "/hyperlink")
    return docx("".join(paragraphs), parts={"word/_rels/document.xml.rels": related})


def words(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*inner: str) -> str:
    return f"<w:p>{''.join(inner)}</w:p>"


def formula(base: str) -> str:
    def run(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    return f'<m:oMath xmlns:m="{MATH}"><m:sSup><m:e>{run(base)}</m:e><m:sup>{run("2")}</m:sup></m:sSup></m:oMath>'


def test_D6_formulas_stand_in_their_sentences():
    link_xml = f'<w:hyperlink xmlns:r="{OFFICE}" r:id="l1">{words("here")}</w:hyperlink>'
    data = letter(
        paragraph(words("Let "), formula("x"), words(" be more than "), formula("y"), words(".")),
        paragraph(formula("z"), words(" begins, and see "), link_xml),
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


def test_D6_formulas_in_cells_stay_there():
    cells = "".join(f"<w:tc>{one}</w:tc>" for one in (paragraph(words("a "), formula("x")), paragraph(words("b"))))
    assert read(letter(f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"), "docx").cells() == [("a $x^{2}$", "b")]
