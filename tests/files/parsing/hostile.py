"""Hostile documents: they unpack endlessly, refer to themselves, nest deeply, or fetch other files."""

import io
import zipfile
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from tests.documents.compound import compound_file

DOCUMENTS = Path(__file__).resolve().parents[2] / "documents"
MEBIBYTE = 2**20
DEEP = 100_000

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
RELATED_TYPE = "application/vnd.openxmlformats-package.relationships+xml"


# Packages of parts


def package(parts: Mapping[str, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return buffer.getvalue()


def docx(body: str, *, head: str = "", parts: Mapping[str, bytes | str] | None = None) -> bytes:
    """Return a document with this body. `head` comes before its root: a document type with entities."""
    types = (
        f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType="{RELATED_TYPE}"/>'
        f'<Override PartName="/word/document.xml" ContentType="{WORD_TYPE}"/></Types>'
    )
    first = f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="word/document.xml"/>'
    related = f'<Relationships xmlns="{PACKAGE}/relationships">{first}</Relationships>'
    document = f'{XML}{head}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    return package(
        {
            "[Content_Types].xml": (XML + types).encode(),
            "_rels/.rels": (XML + related).encode(),
            "word/document.xml": document.encode(),
            **(parts or {}),
        }
    )


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def xml(body: str, *, head: str = "") -> bytes:
    return f"{XML}{head}{body}".encode()


def odt(body: str, *, head: str = "") -> bytes:
    spaces = "urn:oasis:names:tc:opendocument:xmlns"
    names = f'xmlns:office="{spaces}:office:1.0" xmlns:text="{spaces}:text:1.0"'
    inner = f"<office:body><office:text><text:p>{body}</text:p></office:text></office:body>"
    content = f"{XML}{head}<office:document-content {names}>{inner}</office:document-content>"
    return package({"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": content.encode()})


def with_member(data: bytes, name: str, pieces: Iterator[bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, True, 1) as new:
        for part in old.namelist():
            if part != name:
                new.writestr(part, old.read(part))
        with new.open(name, "w") as member:
            for piece in pieces:
                member.write(piece)
    return buffer.getvalue()


# Bombs


def unpacking(mebibytes: int, begin: bytes, filler: bytes, end: bytes) -> Iterator[bytes]:
    piece = filler * (MEBIBYTE // len(filler))
    yield begin
    for _ in range(mebibytes):
        yield piece
    yield end


def docx_bomb(mebibytes: int) -> bytes:
    begin = f'{XML}<w:document xmlns:w="{WORD}"><w:body><w:p><w:r><w:t>'.encode()
    end = b"</w:t></w:r></w:p></w:body></w:document>"
    return with_member(docx(""), "word/document.xml", unpacking(mebibytes, begin, b"A", end))


def xlsx_of(begin: str, pieces: Iterator[bytes]) -> bytes:
    """Return a workbook whose first sheet has these beginning and pieces."""
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    head = f'{XML}<worksheet xmlns="{space}">{begin}<sheetData>'.encode()
    inner = chain([head], pieces, [b"</sheetData></worksheet>"])
    return with_member((DOCUMENTS / "book.xlsx").read_bytes(), "xl/worksheets/sheet1.xml", inner)


def xlsx_bomb(mebibytes: int) -> bytes:
    return xlsx_of("", unpacking(mebibytes, b"", b"<row><c><v>1</v></c></row>", b""))


def xlsx_with_a_far_cell() -> bytes:
    """Return two cells as far apart as a sheet allows; a table of all cells between them fits no memory."""
    cells = b'<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    return xlsx_of('<dimension ref="A1:XFD1048576"/>', iter([cells]))


def nested_zip(levels: int) -> bytes:
    inner = b"A" * MEBIBYTE
    for _ in range(levels):
        inner = package({f"{number}.zip": inner for number in range(10)})
    return inner


def laughs(root: str) -> str:
    """Return a document type whose last entity expands to a thousand million of the first."""
    entities = [f'<!ENTITY e{number} "{f"&e{number - 1};" * 10}">' for number in range(1, 10)]
    return f'<!DOCTYPE {root} [<!ENTITY e0 "ha">{"".join(entities)}]>'


def blowup(root: str) -> str:
    return f'<!DOCTYPE {root} [<!ENTITY long "{"A" * 200_000}">]>'


def fetching(root: str, address: str) -> str:
    """Return document types that load external entities."""
    return (
        f'<!DOCTYPE {root} SYSTEM "{address}/type.dtd" [<!ENTITY file SYSTEM "file:///etc/passwd">'
        f'<!ENTITY net SYSTEM "{address}/entity"><!ENTITY % more SYSTEM "{address}/parameter"> %more;]>'
    )


# PDF


def pdf(*objects: str | bytes) -> bytes:
    """Return a PDF of these objects; the first is its catalog."""
    data, places = b"%PDF-1.7\n", list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body.encode() if isinstance(body, str) else body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer\n<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF" % (len(places) + 1, len(data))
    return data + b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1) + table + trailer


PAGE = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]{}>>"
CATALOG = "<</Type/Catalog/Pages 2 0 R>>"
PAGES = "<</Type/Pages/Kids[3 0 R]/Count 1>>"


def stream(words: str, data: bytes) -> bytes:
    return b"<<%b/Length %d>>stream\n%b\nendstream" % (words.encode(), len(data), data)


def looping_pdf() -> bytes:
    return pdf(CATALOG, "<</Type/Pages/Kids[3 0 R]/Count 2>>", "<</Type/Pages/Parent 2 0 R/Kids[2 0 R 3 0 R]/Count 2>>")


def pdf_of_many_pages() -> bytes:
    return pdf(CATALOG, "<</Type/Pages/Kids[3 0 R]/Count 2000000000>>", PAGE.format(""))


def pdf_of_one_page_many_times(times: int) -> bytes:
    return pdf(CATALOG, f"<</Type/Pages/Kids[{'3 0 R ' * times}]/Count {times}>>", PAGE.format(""))


def pdf_with_a_giant_image() -> bytes:
    page = PAGE.format("/Resources<</XObject<</I 5 0 R>>>>/Contents 4 0 R")
    words = "/Type/XObject/Subtype/Image/Width 60000/Height 60000/BitsPerComponent 1/ColorSpace/DeviceGray"
    return pdf(CATALOG, PAGES, page, stream("", b"600 0 0 800 0 0 cm /I Do"), stream(words, b"\0" * 1_000))


def deep_pdf() -> bytes:
    return pdf(CATALOG, PAGES, PAGE.format(f"/Contents 4 0 R/Deep {'[' * DEEP}{']' * DEEP}"), stream("", b"[" * DEEP))


def pdf_calling_itself() -> bytes:
    page = PAGE.format("/Resources<</XObject<</F 5 0 R>>>>/Contents 4 0 R")
    form = stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F 5 0 R>>>>", b"/F Do /F Do")
    return pdf(CATALOG, PAGES, page, stream("", b"/F Do"), form)


def fetching_pdf(address: str) -> bytes:
    action = f"/OpenAction<</S/URI/URI({address}/action)>>/AA<</O<</S/JavaScript/JS(app.launchURL('{address}/js'))>>>>"
    page = PAGE.format("/Contents 4 0 R/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>")
    words = f"/F<</FS/URL/F({address}/stream)>>"
    text = b"BT /F 12 Tf 50 700 Td (good words) Tj ET"
    return pdf(f"<</Type/Catalog/Pages 2 0 R{action}>>", PAGES, page, stream("", text), stream(words, b""))


# Macros


def docx_with_macros() -> bytes:
    project = compound_file({"VBA/Module1": b'Sub AutoOpen()\r\n Shell "touch harmed"\r\nEnd Sub' * 100})
    return docx(paragraph("good words"), parts={"word/vbaProject.bin": project})


def docx_with_a_remote_template(address: str) -> bytes:
    relation = f'<Relationship Id="r1" Type="{OFFICE}/{{}}" Target="{address}/{{}}" TargetMode="External"/>'
    relations_xml = "".join(
        [relation.format(kind, kind) for kind in ("attachedTemplate", "image", "frame", "oleObject")]
    )
    related = f'{XML}<Relationships xmlns="{PACKAGE}/relationships">{relations_xml}</Relationships>'.encode()
    settings = f'{XML}<w:settings xmlns:w="{WORD}" xmlns:r="{OFFICE}"><w:attachedTemplate r:id="r1"/></w:settings>'
    parts = {
        "word/settings.xml": settings.encode(),
        "word/_rels/settings.xml.rels": related,
        "word/_rels/document.xml.rels": related,
    }
    return docx(paragraph("good words"), parts=parts)


# Damage


def damaged(data: bytes, times: int) -> Iterator[bytes]:
    """Yield copies that are cut off or have a bit changed, each at another place."""
    for number in range(times):
        place = len(data) * number // times
        yield data[:place]
        yield data[:place] + bytes([data[place] ^ (1 << number % 8)]) + data[place + 1 :]
