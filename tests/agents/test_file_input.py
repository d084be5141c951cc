"""D1: why an agent does not take a file."""

import pytest

from recto.agents.file_input import FileInput
from recto.conversation.file_formats import UNKNOWN
from recto.conversation.messages import FileKind

ALL = FileInput(is_on=True, audio=True, video=True)
GPX = FileInput(is_on=True, documents=False, images=False, endings=("gpx",), max_bytes=1_000)
NO_FILES = "this agent accepts no files; name one that does with `agent`"
NOT_KNOWN = "files ending in .gpx are not accepted; the agent's `file_input.endings` may allow them"
TOO_LARGE = "it has 1,001 bytes; this agent accepts files of up to 1,000"


@pytest.mark.parametrize(
    ("allowed", "kind", "mime_type", "name", "why"),
    [
        (FileInput(), "document", "text/plain", "a.txt", NO_FILES),
        (FileInput(endings=("gpx",)), "image", "image/png", "a.png", NO_FILES),
        (ALL, "document", "text/plain", "a.txt", None),
        (ALL, "document", "text/x-odd", "a.gpx", None),
        (ALL, "document", UNKNOWN, "a.gpx", NOT_KNOWN),
        (
            ALL,
            "document",
            UNKNOWN,
            "a.pdf",
            "files ending in .pdf are not accepted; the agent's `file_input.endings` may allow them",
        ),
        (ALL, "document", "application/pdf", "a.PDF", None),
        (ALL, "video", "video/mp4", "a.mp4", None),
        (
            FileInput(is_on=True),
            "audio",
            "audio/mpeg",
            "a.mp3",
            "this agent accepts no audio; it accepts documents, images",
        ),
        (
            FileInput(is_on=True, images=False),
            "image",
            "image/png",
            "a.png",
            "this agent accepts no images; it accepts documents",
        ),
        (GPX, "document", "text/plain", "a.txt", "this agent accepts no documents; it accepts nothing"),
        (GPX, "image", "image/png", "a.gpx", "this agent accepts no images; it accepts nothing"),
        (GPX, "document", UNKNOWN, "a.GPX", None),
    ],
)
def test_D1_a_file_is_taken_or_it_is_said_why_not(
    allowed: FileInput, kind: FileKind, mime_type: str, name: str, why: str | None
):
    assert allowed.why_not(kind, mime_type, name, 1_000) == why


@pytest.mark.parametrize(("most", "why"), [(None, None), (1_001, None), (1_000, TOO_LARGE)])
def test_D1_a_file_has_no_more_bytes_than_the_agent_takes(most: int | None, why: str | None):
    assert FileInput(is_on=True, max_bytes=most).why_not("document", "text/plain", "a.txt", 1_001) == why
