"""What xberg finds in a document. Its errors become ours here; it may not cache, read scans or connect."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from recto.conversation.file_formats import type_for
from recto.files.parsing.refusal import DAMAGED, ENCRYPTED, UnreadableDocument

if TYPE_CHECKING:
    from xberg import ConversionOptions, ExtractInput, ExtractionConfig
    from xberg._xberg import ExtractedDocument, ExtractionResult

# Nodes with headings, lists and links; one text in Markdown; nothing but tables.
ExtractedAs: TypeAlias = Literal["structure", "markdown", "tables"]
# The child is held to its memory; these only have to let large documents through.
_LARGEST = 2**31
_MOST_CELLS = 50_000_000
# What is packed tighter than this is made to be.
_TIGHTEST = 1_000
_SECONDS = 3_600
# Elements of HTML within each other. At twice as many its thread has no stack left, and the child would die of it.
_DEEPEST = 250
_LOCKED = re.compile(r"password|encrypt", re.IGNORECASE)


def extract(data: bytes, form: str, wanted: ExtractedAs = "structure") -> ExtractedDocument:
    """What is in the bytes of a format. What is not wanted would only take time. Raises Unreadable."""
    import xberg

    asked = xberg.ExtractInput(kind=xberg.ExtractInputKind.BYTES, bytes=data, mime_type=type_for(form))
    config = _config(wanted)
    try:
        found = asyncio.run(_ask(asked, config))
    except MemoryError:
        raise
    except Exception as error:
        raise UnreadableDocument(ENCRYPTED if _LOCKED.search(str(error)) else DAMAGED) from error
    except BaseException as error:
        # A panic of Rust is no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise UnreadableDocument(DAMAGED) from error
    if not found.results:
        raise UnreadableDocument(DAMAGED)
    return found.results[0]


async def _ask(asked: ExtractInput, config: ExtractionConfig) -> ExtractionResult:
    import xberg

    return await xberg.extract(asked, config)


@cache
def _config(wanted: ExtractedAs) -> ExtractionConfig:
    import xberg

    return xberg.ExtractionConfig(
        use_cache=False,
        disable_ocr=True,
        enable_quality_processing=False,
        escape_markdown=False,
        mime_detection_policy=xberg.MimeDetectionPolicy.TRUST_EXTENSION,
        output_format=xberg.OutputFormat("markdown" if wanted == "markdown" else "plain"),
        include_document_structure=wanted == "structure",
        extraction_timeout_secs=_SECONDS,
        # What repeats on pages may matter: a table's head, a number of a contract.
        content_filter=xberg.ContentFilterConfig(
            include_headers=True,
            include_footers=True,
            include_footnotes=True,
            strip_repeating_text=False,
            include_watermarks=False,
        ),
        html_options=_html_options(),
        security_limits=xberg.SecurityLimits(
            max_archive_size=_LARGEST,
            max_compression_ratio=_TIGHTEST,
            max_content_size=_LARGEST,
            max_iterations=_LARGEST,
            max_table_cells=_MOST_CELLS,
        ),
    )


def _html_options() -> ConversionOptions:
    import xberg

    return xberg.ConversionOptions(
        extract_metadata=False,
        compact_tables=True,
        bullets="-",
        max_depth=_DEEPEST,
        # Line ends that are meant are told from those that only break a long line.
        newline_style=xberg.NewlineStyle.BACKSLASH,
        inline_data_media=xberg.InlineDataMedia.ALT_TEXT_ONLY,
        # On many pages all of the words are in one form, or under the head.
        preprocessing=xberg.PreprocessingOptions(enabled=False, remove_navigation=False, remove_forms=False),
    )
