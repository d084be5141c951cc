"""Small PDFs, written by hand."""

from collections.abc import Sequence

FONTS = "/Resources<</Font<</F 5 0 R>>/XObject<</I 6 0 R>>>>"


def made(*objects: str) -> bytes:
    numbered = "".join(f"{number} 0 obj\n{one}\nendobj\n" for number, one in enumerate(objects, 1))
    return f"%PDF-1.7\n{numbered}trailer\n<</Root 1 0 R>>\n".encode("latin-1")


def stream(content: str, fields: str = "") -> str:
    return f"<</Length {len(content)}{fields}>>stream\n{content}\nendstream"


def one_page(content: str, *others: str, fields: str = "") -> bytes:
    return made(
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
    """A table's words in their places on a page, without lines."""
    places = [(row, column, cell) for row, cells in enumerate(rows) for column, cell in enumerate(cells) if cell]
    return "".join(words_at(76 + column * width, 686 - row * height, cell) for row, column, cell in places)


def lines_of(rows: Sequence[Sequence[str]], width: int = 80, height: int = 20) -> str:
    """The lines of such a table."""
    right, bottom = 72 + len(rows[0]) * width, 700 - len(rows) * height
    upright = [f"{x} 700 m {x} {bottom} l " for x in range(72, right + 1, width)]
    across = [f"72 {y} m {right} {y} l " for y in range(bottom, 701, height)]
    return "".join(f"{one}S " for one in (*upright, *across))
