"""The text of one uploaded file. The one place that knows how a file is read, plain text only; it fetches no urls."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial

from recto.errors import FileRefused
from recto.page.input_files import InputFile
from recto.tools.decode import decode
from recto.tools.ports import FilesAtHand
from recto.tools.text_cache import TextKey
from recto.tools.thread import in_thread

# Raised whenever the same bytes would give another text: those of an older version are not used any more (D3).
PARSER_VERSION = 1
# As text it may take four times as much memory, and several runs may read at once.
MOST_BYTES = 64 * 2**20
TOO_LARGE = f"it has more than {MOST_BYTES // 2**20} MiB, and no more is read of a file. Ask the user for a part of it."
NOT_TEXT = "its bytes are no text. Plain text can be read, such as txt, md, csv, json, html or code. Tell the user so."


async def text_of_file(file: InputFile, files: FilesAtHand) -> str:
    """The whole text of a file, made once for all who read it. Raises FileRefused for one that has none to give.

    The hash is asked for each time: who may not read the file any more is told so, whatever is kept of it.
    """
    key = TextKey(sha256=await files.sha256_of(file), parser=PARSER_VERSION)
    return await files.texts.text(key, partial(_parsed, file, files))


async def _parsed(file: InputFile, files: FilesAtHand) -> str:
    data = await _bytes_of(file, files)
    text = await in_thread(partial(decode, data), name="decode")
    if text is None:
        raise FileRefused(NOT_TEXT, code="not_text")
    return text


async def _bytes_of(file: InputFile, files: FilesAtHand) -> bytes:
    data = bytearray()
    async with aclosing(files.read(file)) as pieces:
        async for piece in pieces:
            data += piece
            if len(data) > MOST_BYTES:
                raise FileRefused(TOO_LARGE, code="too_large")
    return bytes(data)
