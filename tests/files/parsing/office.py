"""Office documents of a few parts, written by hand."""

from tests.files.parsing.hostile import OFFICE, PACKAGE, package

SPACE = "urn:oasis:names:tc:opendocument:xmlns"
_PREFIXES = {
    **{name: name for name in ("office", "text", "table", "presentation", "chart", "style")},
    "draw": "drawing",
    "svg": "svg-compatible",
}
NAMESPACES = " ".join(
    [f'xmlns:{prefix}="{SPACE}:{name}:1.0"' for prefix, name in _PREFIXES.items()]
    + ['xmlns:xlink="http://www.w3.org/1999/xlink"']
)


def relations(**targets: str) -> str:
    """Return the relations of a part of an Office package; those with an address are external."""
    relations_xml = "".join(
        f'<Relationship Id="{key}" Type="{OFFICE}/x" Target="{target}"'
        + (' TargetMode="External"/>' if ":" in target else "/>")
        for key, target in targets.items()
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{relations_xml}</Relationships>'


def open_document(kind: str, body: str, *, styles: str = "", **objects: str) -> bytes:
    """Return an OpenDocument with this body; `objects` are embedded under their names."""
    parts = {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "META-INF/manifest.xml": f'<m:manifest xmlns:m="{SPACE}:manifest:1.0"/>',
    }
    for name, inner in {"": f"<office:{kind}>{body}</office:{kind}>", **objects}.items():
        whole = f"{styles}<office:body>{inner}</office:body>"
        path = f"{name}/content.xml".lstrip("/")
        parts[path] = f"<office:document-content {NAMESPACES}>{whole}</office:document-content>"
    return package(parts)


def table_row(*cells: str) -> str:
    return f"<table:table-row>{''.join(cells)}</table:table-row>"
