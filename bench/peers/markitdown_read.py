"""MarkItDown on documents, one at a time, as they are named.

Each line of the input is the path of a document. It is answered with a line of JSON: the seconds it took and the
characters it gave, or the name of the error.
"""

import json
import logging
import sys
import time

from markitdown import MarkItDown


def main():
    logging.disable(logging.CRITICAL)
    reader = MarkItDown(enable_plugins=False)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(read(reader, line.rstrip("\n"))), flush=True)


def read(reader, path):
    start = time.perf_counter()
    try:
        text = reader.convert(path).text_content
    except Exception as error:  # whatever it is, the other documents are read as well
        return {"seconds": time.perf_counter() - start, "error": type(error).__name__}
    return {"seconds": time.perf_counter() - start, "characters": len(text)}


main()
