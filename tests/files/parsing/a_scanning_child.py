"""A child that says it reads scans, as often as it is told to, and then hangs."""

import sys
import time

from recto.files.parsing.pool import child
from recto.files.parsing.pool.frames import Ready
from recto.files.parsing.ports import FoundElements, Opened


def main() -> None:
    child.end_with_parent()
    questions, answers = child.claim_wire()
    child.say(answers, Ready())
    order = child.next_order(questions)
    assert order
    questions.read(order.size)
    child.say(answers, Opened())
    for _ in range(int(sys.argv[1])):
        child.say(answers, FoundElements(scans=True))
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
