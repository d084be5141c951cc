"""A child that is at work for ever, and does not hear that the wire is closed."""

import signal

from recto.files.parsing import child
from recto.files.parsing.frames import Ready
from recto.files.parsing.ports import DocumentEnd, Opened


def main() -> None:
    child.end_with_parent()
    questions, answers = child.claim_wire()
    child.say(answers, Ready())
    order = child.next_order(questions)
    assert order
    questions.read(order.size)
    child.say(answers, Opened())
    child.say(answers, DocumentEnd())
    signal.pause()


if __name__ == "__main__":
    main()
