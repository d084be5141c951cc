"""Small PDFs, written by hand."""

from collections.abc import Sequence

FONTS = "/Resources<</Font<</F 5 0 R>>/XObject<</I 6 0 R>>>>"


def pdf_of(*objects: str) -> bytes:
    objects_text = "".join(f"{number} 0 obj\n{one}\nendobj\n" for number, one in enumerate(objects, 1))
    return f"%PDF-1.7\n{objects_text}trailer\n<</Root 1 0 R>>\n".encode("latin-1")


def stream(content: str, fields: str = "") -> str:
    return f"<</Length {len(content)}{fields}>>stream\n{content}\nendstream"


def one_page(content: str, *others: str, fields: str = "") -> bytes:
    return pdf_of(
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R{FONTS}{fields}>>",
        stream(content),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *others,
    )


def words_at(x: float, y: float, words: str) -> str:
    return f"BT /F 10 Tf {x} {y} Td ({words}) Tj ET "


def grid(rows: Sequence[Sequence[str]], width: int = 80, height: int = 20) -> str:
    """Return the words of a table at their places on a page, without lines."""
    places = [(row, column, cell) for row, cells in enumerate(rows) for column, cell in enumerate(cells) if cell]
    return "".join(words_at(76 + column * width, 686 - row * height, cell) for row, column, cell in places)


def lines_of(rows: Sequence[Sequence[str]], width: int = 80, height: int = 20) -> str:
    right, bottom = 72 + len(rows[0]) * width, 700 - len(rows) * height
    upright = [f"{x} 700 m {x} {bottom} l " for x in range(72, right + 1, width)]
    across = [f"72 {y} m {right} {y} l " for y in range(bottom, 701, height)]
    return "".join(f"{one}S " for one in (*upright, *across))


def unicode_page(*lines: str) -> bytes:
    """Return a page of lines in any script, with the characters drawn from left to right."""
    alphabet = sorted({letter for line in lines for letter in line})
    codes = " ".join(f"<{ord(one):04X}> <{ord(one):04X}>" for one in alphabet)
    letters = (
        "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange "
        f"{len(alphabet)} beginbfchar {codes} endbfchar endcmap end"
    )
    content = (
        f"BT /F 12 Tf 72 {700 - 20 * number} Td <{''.join(f'{ord(one):04X}' for one in line)}> Tj ET "
        for number, line in enumerate(lines)
    )
    system = "<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>"
    shape = "/Flags 4/FontBBox[0 -200 600 800]/ItalicAngle 0/Ascent 800/Descent -200/CapHeight 700/StemV 80"
    return pdf_of(
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        stream("".join(content)),
        "<</Type/Font/Subtype/Type0/BaseFont/A/Encoding/Identity-H/DescendantFonts[6 0 R]/ToUnicode 7 0 R>>",
        f"<</Type/Font/Subtype/CIDFontType2/BaseFont/A/CIDSystemInfo{system}/DW 600/FontDescriptor 8 0 R>>",
        stream(letters),
        f"<</Type/FontDescriptor/FontName/A{shape}>>",
    )
