"""A server that parses a document, prints the process that parsed it, and waits to be killed."""

import asyncio
import os
import sys
from pathlib import Path

from recto.config.file_settings import PoolSettings
from recto.files.parsing.parser_pool import Parsers
from tests.files.parsing.a_pool import children, text_from


async def main() -> None:
    parsers = Parsers(PoolSettings(sandbox=""), command=[sys.executable, *sys.argv[2:]])
    await text_from(parsers, "a.html", b"hello")
    Path(sys.argv[1]).write_text(" ".join(map(str, children())))
    print(os.getpid(), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
