"""Makes the documents in tests/documents again, with LibreOffice. Leaves alone what it cannot make."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from email.message import EmailMessage
from html import escape
from pathlib import Path
from typing import NamedTuple

import pypdfium2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.documents import content
from tests.documents.compound import compound_file

HERE = content.HERE
SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in {
        **{name: name for name in ("office", "table", "text", "style", "presentation")},
        "draw": "drawing",
        "svg": "svg-compatible",
        "fo": "xsl-fo-compatible",
        "number": "datastyle",
    }.items()
)
FONT = "Noto Sans CJK SC"
MOST_SECONDS = 60
WRITER = ("docx:MS Word 2007 XML", "doc:MS Word 97", "odt", "rtf", "pdf", "epub", "html:HTML (StarWriter)")
BOOK = ("xlsx:Calc MS Excel 2007 XML", "xls:MS Excel 97")
DECK = ("pptx:Impress MS PowerPoint 2007 XML", "ppt:MS PowerPoint 97", "odp", "pdf")
CONVERSIONS = {
    "letter.fodt": WRITER,
    "book.fods": BOOK,
    # Not from the flat one: some versions end when they write a formula of it.
    "book.xlsx": ("ods",),
    "deck.fodp": DECK,
    "long.fodt": ("pdf",),
    "scan.fodt": ("pdf",),
}
# Programs save these with a password; the filter's name is what LibreOffice calls the format.
SECRETS = {"doc": ("letter.fodt", "MS Word 97"), "odt": ("letter.fodt", "writer8"), "xls": ("book.fods", "MS Excel 97")}
MACRO = """Sub Main
  Dim hide(0) As New com.sun.star.beans.PropertyValue
  hide(0).Name = "Hidden" : hide(0).Value = True
  Dim save(1) As New com.sun.star.beans.PropertyValue
  save(0).Name = "Password" : save(0).Value = "{password}"
  Dim document
{steps}
End Sub
"""
STEP = """  document = StarDesktop.loadComponentFromURL("{source}", "_blank", 0, hide())
  save(1).Name = "FilterName" : save(1).Value = "{filter}"
  document.storeToURL("{target}", save())
  document.close(True)
"""


def main() -> None:
    """Makes every document, sources first."""
    office = shutil.which("soffice")
    if office is None:
        sys.exit("make documents needs LibreOffice: install it so that `soffice` is found, then try again.")
    sources = {
        "letter.fodt": letter(),
        "long.fodt": long(),
        "scan.fodt": scan(),
        "book.fods": book(),
        "deck.fodp": deck(),
    }
    with tempfile.TemporaryDirectory() as folder:
        work_folder = Path(folder)
        for name, text in sources.items():
            (work_folder / name).write_text(text, encoding="utf-8")
        for name, formats in CONVERSIONS.items():
            for one in formats:
                convert(office, work_folder, name, one)
        convert(office, work_folder, "letter.fodt", "pdf:writer_pdf_Export:" + PDF_SECRET, into="locked")
        lock(office, work_folder)
        keep(work_folder)
    (HERE / "scan.pdf").write_bytes(as_picture((HERE / "scan.pdf").read_bytes()))
    texts()
    # A macro cannot save this one with a password. What a program writes around the cipher is all that can be told.
    sealed = {"EncryptionInfo": b"\4\0\4\0\x40\0\0\0<encryption/>", "EncryptedPackage": bytes(range(256)) * 40}
    (HERE / "secret.docx").write_bytes(compound_file(sealed))
    (HERE / "mail.eml").write_bytes(mail())
    (HERE / "mail.msg").write_bytes(outlook())


PDF_SECRET = (
    '{"EncryptFile":{"type":"boolean","value":"true"},'
    f'"DocumentOpenPassword":{{"type":"string","value":"{content.PASSWORD}"}}}}'
)


def convert(office: str, folder: Path, name: str, target: str, into: str = ".") -> None:
    """One document in another format."""
    run(office, folder, "--convert-to", target, "--outdir", str(folder / into), str(folder / name))


def run(office: str, folder: Path, *arguments: str) -> None:
    """LibreOffice with a profile of its own, so that one that is open does not get in the way."""
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    command = [office, "--headless", "--norestore", profile, *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=MOST_SECONDS)


def lock(office: str, folder: Path) -> None:
    """The documents with a password: only a macro can save them so."""
    basic = folder / "profile" / "user" / "basic" / "Standard"
    basic.mkdir(parents=True, exist_ok=True)
    steps = "".join(
        STEP.format(source=(folder / name).as_uri(), target=(folder / f"secret.{ending}").as_uri(), filter=filter_name)
        for ending, (name, filter_name) in SECRETS.items()
    )
    macro = MACRO.format(password=content.PASSWORD, steps=steps)
    kind = '<!DOCTYPE script:module PUBLIC "-//OpenOffice.org//DTD OfficeDocument 1.0//EN" "module.dtd">'
    (basic / "Locking.xba").write_text(
        f'<?xml version="1.0" encoding="UTF-8"?>\n{kind}\n<script:module xmlns:script="http://openoffice.org/2000/script"'
        f' script:name="Locking" script:language="StarBasic">{escape(macro)}</script:module>',
        encoding="utf-8",
    )
    kind = kind.replace("script:module", "library:library").replace("module.dtd", "library.dtd")
    (basic / "script.xlb").write_text(
        f'<?xml version="1.0" encoding="UTF-8"?>\n{kind}\n<library:library'
        ' xmlns:library="http://openoffice.org/2000/library" library:name="Standard" library:readonly="false"'
        ' library:passwordprotected="false"><library:element library:name="Locking"/></library:library>',
        encoding="utf-8",
    )
    run(office, folder, "macro:///Standard.Locking.Main")


def keep(folder: Path) -> None:
    """Puts what was made, and its sources, in the folder of the tests."""
    (HERE / "sources").mkdir(exist_ok=True)
    for path in sorted(folder.iterdir()):
        if path.suffix.startswith(".fod"):
            shutil.copy(path, HERE / "sources" / path.name)
        elif path.stem in ("letter", "book", "deck", "long", "scan", "secret"):
            shutil.copy(path, HERE / path.name)
    shutil.copy(folder / "locked" / "letter.pdf", HERE / "secret.pdf")


# Sources, in flat ODF.


def document(kind: str, body: str, styles: str = "") -> str:
    """A flat document around a body."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<office:document {SPACES} xmlns:xlink="http://www.w3.org/1999/xlink"'
        ' xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2" office:version="1.3"'
        f' office:mimetype="application/vnd.oasis.opendocument.{kind}">'
        f"{STYLES.get(kind, '')}<office:automatic-styles>{styles}</office:automatic-styles>"
        f"{MASTER if kind == 'presentation' else ''}"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document>\n"
    )


# Without a master page titles are boxes like all others.
MASTER = (
    '<office:master-styles><style:master-page style:name="Default" style:page-layout-name="M">'
    '<draw:frame presentation:class="title" presentation:placeholder="true" svg:x="2cm" svg:y="1cm" svg:width="24cm"'
    ' svg:height="3cm"><draw:text-box/></draw:frame>'
    '<draw:frame presentation:class="outline" presentation:placeholder="true" svg:x="2cm" svg:y="4cm" svg:width="24cm"'
    ' svg:height="12cm"><draw:text-box/></draw:frame></style:master-page></office:master-styles>'
)
HEADINGS = (
    "<office:styles>"
    + "".join(
        f'<style:style style:name="Heading_20_{level}" style:display-name="Heading {level}" style:family="paragraph"'
        f' style:default-outline-level="{level}"><style:text-properties fo:font-size="{size}pt" fo:font-weight="bold"'
        f' style:font-size-asian="{size}pt" style:font-weight-asian="bold" fo:font-family="{FONT}"'
        f' style:font-family-asian="{FONT}"/></style:style>'
        for level, size in ((1, 22), (2, 16))
    )
    + "</office:styles>"
)
STYLES = {
    "text": HEADINGS,
    "presentation": (
        '<office:styles><style:presentation-page-layout style:name="AL1T1"><presentation:placeholder'
        ' presentation:object="title" svg:x="2cm" svg:y="1cm" svg:width="24cm" svg:height="3cm"/>'
        '<presentation:placeholder presentation:object="outline" svg:x="2cm" svg:y="4cm" svg:width="24cm"'
        ' svg:height="12cm"/></style:presentation-page-layout></office:styles>'
    ),
}
FONTS = (
    f'<style:style style:name="P" style:family="paragraph"><style:text-properties style:font-name-asian="{FONT}"'
    f' fo:font-family="{FONT}" style:font-family-asian="{FONT}" fo:font-size="{{size}}"'
    ' style:font-size-asian="{size}"/></style:style>'
)


def paragraph(inner: str, style: str = "P") -> str:
    """A paragraph; its words are marked up already."""
    return f'<text:p text:style-name="{style}">{inner}</text:p>'


def heading(text: str, level: int, style: str | None = None) -> str:
    """A heading, in the style every program knows for its level."""
    name = style or f"Heading_20_{level}"
    return f'<text:h text:style-name="{name}" text:outline-level="{level}">{escape(text)}</text:h>'


def link(text: str, url: str) -> str:
    """Words that lead somewhere."""
    return f'<text:a xlink:type="simple" xlink:href="{escape(url)}">{escape(text)}</text:a>'


def grid(name: str, rows: Sequence[Sequence[str]]) -> str:
    """A table of words."""
    cells = (
        "".join(
            f'<table:table-cell office:value-type="string"><text:p>{escape(cell)}</text:p></table:table-cell>'
            for cell in row
        )
        for row in rows
    )
    columns = f'<table:table-column table:number-columns-repeated="{len(rows[0])}"/>'
    return (
        f'<table:table table:name="{name}">{columns}'
        + "".join(f"<table:table-row>{row}</table:table-row>" for row in cells)
        + "</table:table>"
    )


def make_list(items: Iterable[str], style: str) -> str:
    """A list; its items are marked up already."""
    return (
        f'<text:list text:style-name="{style}">'
        + "".join(f"<text:list-item>{item}</text:list-item>" for item in items)
        + "</text:list>"
    )


def list_style(name: str, kind: str, sign: str) -> str:
    """Two levels of bullets, or of numbers."""
    levels = "".join(
        f'<text:list-level-style-{kind} text:level="{level}" {sign}><style:list-level-properties'
        f' text:list-level-position-and-space-mode="label-alignment"><style:list-level-label-alignment'
        f' text:label-followed-by="listtab" fo:margin-left="{level}cm" fo:text-indent="-0.6cm"/>'
        f"</style:list-level-properties></text:list-level-style-{kind}>"
        for level in (1, 2)
    )
    return f'<text:list-style style:name="{name}">{levels}</text:list-style>'


def letter() -> str:
    """Headings, paragraphs, a link, a table, lists, a footnote."""
    first, second, third = (paragraph(escape(item)) for item in content.ITEMS)
    inner = make_list([paragraph(escape(content.INNER_ITEM))], "L1")
    note = (
        '<text:note text:id="ftn1" text:note-class="footnote"><text:note-citation>1</text:note-citation>'
        f"<text:note-body><text:p>{escape(content.FOOTNOTE)}</text:p></text:note-body></text:note>"
    )
    body = (
        heading(content.TITLE, 1)
        + "".join(paragraph(escape(text)) for text in content.PARAGRAPHS)
        + paragraph(escape(content.LINK_BEFORE) + link(content.LINK_TEXT, content.LINK_URL))
        + heading(content.DATA_HEADING, 2)
        + grid("Figures", content.TABLE)
        + heading(content.STEPS_HEADING, 2)
        + make_list([first, second + inner, third], "L1")
        + make_list([paragraph(escape(step)) for step in content.STEPS], "L2")
        + paragraph(escape(content.NOTE_TEXT) + note)
        + paragraph(escape(content.ENDING))
    )
    styles = FONTS.format(size="11pt") + list_style("L1", "bullet", 'text:bullet-char="•"')
    return document("text", body, styles + list_style("L2", "number", 'style:num-format="1" style:num-suffix="."'))


def long() -> str:
    """Three hundred pages, a chapter each."""
    broken = (
        '<style:style style:name="H" style:family="paragraph" style:parent-style-name="Heading_20_1">'
        '<style:paragraph-properties fo:break-before="page"/></style:style>'
    )
    body = "".join(
        heading(chapter, 1, None if place == 0 else "H") + "".join(paragraph(escape(line)) for line in lines)
        for place, (chapter, *lines) in enumerate(content.LONG_PAGES)
    )
    return document("text", body, FONTS.format(size="11pt") + broken)


def scan() -> str:
    """A page in large letters, to be made a picture of."""
    return document("text", "".join(paragraph(escape(line)) for line in content.SCAN), FONTS.format(size="20pt"))


def book() -> str:
    """Thirty sheets: words, dates, numbers, a sum; one is hidden."""
    styles = (
        '<style:style style:name="shown" style:family="table"><style:table-properties table:display="true"/>'
        "</style:style>"
        '<style:style style:name="hidden" style:family="table"><style:table-properties table:display="false"/>'
        "</style:style>"
        '<number:date-style style:name="N1"><number:year number:style="long"/><number:text>-</number:text>'
        '<number:month number:style="long"/><number:text>-</number:text><number:day number:style="long"/>'
        "</number:date-style>"
        '<style:style style:name="D" style:family="table-cell" style:data-style-name="N1"/>'
    )
    return document("spreadsheet", "".join(map(sheet, content.SHEETS)), styles)


def sheet(one: content.Sheet) -> str:
    """A sheet whose last row adds up the numbers."""
    head, *rows, total = one.rows
    lines = [
        "".join(map(word, head)),
        *(
            word(name)
            + f'<table:table-cell table:style-name="D" office:value-type="date" office:date-value="{day}"/>'
            + f'<table:table-cell office:value-type="float" office:value="{amount}"/>'
            for name, day, amount in rows
        ),
        word(total[0])
        + "<table:table-cell/>"
        + f'<table:table-cell table:formula="of:=SUM([.C2:.C{len(rows) + 1}])" office:value-type="float"'
        ' office:value="0"/>',
    ]
    style = "hidden" if one.is_hidden else "shown"
    inner = "".join(f"<table:table-row>{line}</table:table-row>" for line in lines)
    return f'<table:table table:name="{escape(one.name)}" table:style-name="{style}">{inner}</table:table>'


def word(text: str) -> str:
    """A cell with words in it."""
    return f'<table:table-cell office:value-type="string"><text:p>{escape(text)}</text:p></table:table-cell>'


def deck() -> str:
    """Ten slides with notes; one has a table."""
    slides = "".join(slide(number, one) for number, one in enumerate(content.SLIDES, 1))
    boxes = "".join(
        f'<style:style style:name="{kind}" style:family="presentation" style:parent-style-name="Default-{parent}"/>'
        for kind, parent in (("title", "title"), ("outline", "outline1"), ("notes", "notes"))
    )
    layout = (
        '<style:page-layout style:name="M"><style:page-layout-properties fo:page-width="28cm" fo:page-height="21cm"/>'
        "</style:page-layout>"
    )
    return document("presentation", slides, FONTS.format(size="18pt") + layout + boxes)


def slide(number: int, one: content.Slide) -> str:
    """A title, two lines, a link, notes."""
    lines = "".join(paragraph(escape(line)) for line in one.lines) + paragraph(link(content.SLIDE_LINK_TEXT, one.link))
    table = frame("", 12, grid("T", one.rows), "24cm") if one.rows else ""
    return (
        f'<draw:page draw:name="page{number}" draw:master-page-name="Default"'
        ' presentation:presentation-page-layout-name="AL1T1">'
        + frame("title", 1, f"<draw:text-box>{paragraph(escape(one.title))}</draw:text-box>")
        + frame("outline", 4, f"<draw:text-box>{lines}</draw:text-box>")
        + table
        + "<presentation:notes>"
        + frame("notes", 14, f"<draw:text-box>{paragraph(escape(one.note))}</draw:text-box>", "16cm")
        + "</presentation:notes></draw:page>"
    )


def frame(kind: str, top: int, inner: str, width: str = "24cm") -> str:
    """A box on a slide."""
    attributes = f'presentation:class="{kind}" presentation:style-name="{kind}" ' if kind else ""
    return (
        f'<draw:frame {attributes}svg:x="2cm" svg:y="{top}cm" svg:width="{width}" svg:height="3cm">{inner}</draw:frame>'
    )


# What needs no LibreOffice.


def as_picture(pdf: bytes) -> bytes:
    """The first page of a PDF as a PDF that is nothing but a picture of it."""
    bitmap = pypdfium2.PdfDocument(pdf)[0].render(scale=2, grayscale=True)
    pixels = b"".join(bytes(bitmap.buffer)[row * bitmap.stride :][: bitmap.width] for row in range(bitmap.height))
    packed = zlib.compress(pixels, 9)
    drawing = b"q 595 0 0 842 0 0 cm /I Do Q"
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /XObject << /I 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawing), drawing),
        b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8"
        b" /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream"
        % (bitmap.width, bitmap.height, len(packed), packed),
    )
    out, places = b"%PDF-1.4\n", list[int]()
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    return out + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        count, table, count, len(out),
    )  # fmt: skip


def texts() -> None:
    """Plain texts, tables and a page of HTML in older encodings."""
    for encoding, text in content.TEXTS.items():
        (HERE / f"text.{encoding}.txt").write_bytes(text.encode(encoding))
    for encoding, rows in content.CSV_ROWS.items():
        lines = io.StringIO()
        csv.writer(lines).writerows(rows)
        (HERE / f"table.{encoding}.csv").write_bytes(lines.getvalue().encode(encoding))
    page = (
        '<html><head><meta http-equiv="Content-Type" content="text/html; charset=gb2312"><title>网页</title></head>'
        f"<body><h1>{content.TITLE}</h1>"
        + "".join(f"<p>{text}</p>" for text in content.PARAGRAPHS)
        + "</body></html>\n"
    )
    (HERE / "page.gb2312.html").write_bytes(page.encode("gb2312"))


def mail() -> bytes:
    """A message in two forms, with a file attached."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = content.SENDER, content.RECIPIENT, content.SUBJECT
    message["Date"] = content.SENT_TIME
    message.set_content("\n\n".join(content.BODY) + "\n")
    message.add_alternative(
        "<html><body>" + "".join(f"<p>{line}</p>" for line in content.BODY) + "</body></html>\n", subtype="html"
    )
    message.add_attachment(content.ATTACHED_TEXT, filename=content.ATTACHED)
    message.set_boundary("=== outer ===")
    next(iter(message.iter_parts())).set_boundary("=== inner ===")
    return message.as_bytes()


def outlook() -> bytes:
    """The same as Outlook writes it, without the form in HTML."""
    return compound_file(dict(properties()))


class Property(NamedTuple):
    """A text of an Outlook message, by the number its format knows it by."""

    number: int
    text: str


def properties() -> Iterator[tuple[str, bytes]]:
    """The streams of an Outlook message."""
    name, address = content.SENDER.rstrip(">").split(" <")
    own = (
        Property(0x001A, "IPM.Note"),
        Property(0x0037, content.SUBJECT),
        Property(0x0C1A, name),
        Property(0x0C1E, "SMTP"),
        Property(0x0C1F, address),
        Property(0x0E04, content.RECIPIENT),
        Property(0x1000, "\r\n\r\n".join(content.BODY)),
        Property(0x007D, f"Date: {content.SENT_TIME}\r\n"),
    )
    yield from streams("", own, bytes(8) + (1).to_bytes(4, "little") * 4 + bytes(8))
    to_name, to_address = content.RECIPIENT.rstrip(">").split(" <")
    whom = (Property(0x3001, to_name), Property(0x3003, to_address), Property(0x39FE, to_address))
    yield from streams("__recip_version1.0_#00000000/", whom, bytes(8))
    attachment = "__attach_version1.0_#00000000/"
    yield from streams(attachment, (Property(0x3704, content.ATTACHED), Property(0x3707, content.ATTACHED)), bytes(8))
    yield attachment + "__substg1.0_37010102", content.ATTACHED_TEXT.encode()


def streams(folder: str, texts: Sequence[Property], head: bytes) -> Iterator[tuple[str, bytes]]:
    """Each text in a stream of its own, and one that lists them."""
    properties = head
    for number, text in texts:
        data = text.encode("utf-16-le")
        yield f"{folder}__substg1.0_{number:04X}001F", data
        properties += (number << 16 | 0x1F).to_bytes(4, "little") + (6).to_bytes(4, "little")
        properties += (len(data) + 2).to_bytes(4, "little") + bytes(4)
    yield f"{folder}__properties_version1.0", properties


if __name__ == "__main__":
    main()
