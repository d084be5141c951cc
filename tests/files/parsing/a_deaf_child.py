"""A parser process that is busy forever and does not notice a closed pipe."""

import signal

from recto.files.parsing import child
from recto.files.parsing.frames import Ready
from recto.files.parsing.ports import DocumentEnd, DocumentStart


def main() -> None:
    child.end_with_parent()
    questions, answers = child.claim_pipes()
    child.send(answers, Ready())
    order = child.read_order(questions)
    assert order
    questions.read(order.size)
    child.send(answers, DocumentStart())
    child.send(answers, DocumentEnd())
    signal.pause()


if __name__ == "__main__":
    main()
