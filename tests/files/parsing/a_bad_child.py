"""A misbehaving parser process: `python a_bad_child.py WAY`. It speaks the protocol without using Recto."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

START_FRAME = {"frame": "opened", "unit": None, "page_count": None}
END_FRAME = {"frame": "ended"}


def elements_frame(text: str) -> dict[str, object]:
    return {"frame": "found", "elements": [{"kind": "text", "text": text}], "pages": 0}


def say(*rows: object) -> None:
    for row in rows:
        write(json.dumps(row).encode())


def write(body: bytes) -> None:
    raw(len(body).to_bytes(4, "big") + body)


def raw(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def take() -> str:
    """Return the name of the requested document and skip its data."""
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        sys.exit(0)
    order = json.loads(sys.stdin.buffer.read(int.from_bytes(head, "big")))
    sys.stdin.buffer.read(order["size"])
    return order["task"]["name"]


def hang(_data: bytes = b"") -> None:
    """Wait until the test closes its end of the pipe."""
    while sys.stdin.buffer.read(1):
        pass


def be(way: str) -> None:
    """Fail on one document. With the way `named`, the name of the document selects the failure."""
    match way:
        case "good":
            say(START_FRAME, elements_frame(f"{os.getpid()}"), END_FRAME)
        case "leaves":
            say(START_FRAME, elements_frame(f"{os.getpid()}"), END_FRAME)
            sys.exit(0)
        case "garbage":
            raw(b"warning: something was printed\n")
        case "no_json":
            write(b"{")
        case "huge_frame":
            raw(b"\xff\xff\xff\xff")
        case "half_a_frame":
            raw(b"\0\0\0\x09half")
            sys.exit(0)
        case "wrong_order":
            say(elements_frame("early"))
        case "dies":
            os.abort()
        case "out_of_memory":
            os.write(2, b"memory allocation of 4294967296 bytes failed\n")
            os.abort()
        case "is_killed":
            os.kill(os.getpid(), 9)
        case _:
            be_worse(way)


def be_worse(way: str) -> None:
    """Use too much memory, time or processes."""
    match way:
        case "endless":
            say(START_FRAME)
            while True:
                say({"frame": "found", "elements": [], "pages": 0, "filler": "x" * 200_000})
        case "long_text":
            say(START_FRAME)
            while True:
                say(elements_frame("x" * 100_000))
        case "bit_by_bit":
            say(START_FRAME)
            while True:
                say(elements_frame("more"))
        case "hangs":
            say(START_FRAME, elements_frame("begun"))
            hang()
        case "starts_others":
            other = subprocess.Popen(["sleep", "600"])
            say(START_FRAME, elements_frame(str(other.pid)))
            hang()
        case "starts_others_and_dies":
            other = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
            say(START_FRAME, elements_frame(str(other.pid)))
            os.abort()
        case "swells":
            hang(b"x" * (int(sys.argv[2]) << 20))
        case "chatty":
            os.write(2, b"x" * 1_000_000)
            say(START_FRAME, elements_frame("done"), END_FRAME)
        case "counts":
            say(START_FRAME)
            for number in range(400):
                Path(sys.argv[2]).write_text(str(number))
                say(elements_frame("x" * 10_000))
            say(END_FRAME)
        case _:
            sys.exit(f"no such way: {way}")


def main() -> None:
    way = sys.argv[1]
    if way == "never_starts":
        sys.exit(3)
    if way == "never_ready":
        hang()
    say({"frame": "ready"})
    if way == "never_reads":
        select.select([sys.stdin], [], [])
        Path(sys.argv[2]).touch()
        signal.pause()
    while True:
        name = take()
        be(name if way == "named" else way)
        say({"frame": "ready"})


if __name__ == "__main__":
    main()
