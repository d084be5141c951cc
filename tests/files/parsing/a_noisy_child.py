"""A parser process whose libraries print to standard output, and whose text has unpaired surrogates."""

import os
import subprocess
import sys

from recto.conversation.document import Element
from recto.files.parsing import child
from recto.files.parsing.frames import Ready
from recto.files.parsing.ports import DocumentEnd, DocumentStart, FoundElements


def main() -> None:
    questions, answers = child.claim_pipes()
    child.send(answers, Ready())
    order = child.read_order(questions)
    assert order
    questions.read(order.size)
    print("a library prints" * 10_000, flush=True)
    os.write(1, b"\xff" * 10_000)
    subprocess.run([sys.executable, "-S", "-c", "import sys; print(sys.stdin.read() or 'nothing')"], check=True)
    rows = (("cell \ud800",),)
    child.send(answers, DocumentStart())
    child.send(answers, FoundElements(elements=(Element(kind="table", text="half \udfff of one", rows=rows),)))
    child.send(answers, DocumentEnd())


if __name__ == "__main__":
    main()
