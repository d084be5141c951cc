"""The pictures of the documents show what happens: made again, they say the same."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from tests.layers import ROOT

# What differs from run to run: ids, times, counts, and how many blanks they leave.
CHANGING = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f-]+)?|[\d,.:TZ-]+|\s+")


@pytest.mark.full
def test_X1_X4_the_pictures_of_the_documents_are_what_the_server_shows(tmp_path: Path):
    subprocess.run([sys.executable, "-m", "scripts.pictures", str(tmp_path)], check=True, timeout=120, cwd=ROOT)
    pictures, folder_made = ROOT / "docs/pictures", tmp_path
    assert words_of(folder_made / "manifest.svg") == words_of(pictures / "manifest.svg"), "Run: make pictures"
    assert "folded R" in words_of(folder_made / "manifest.svg")
    assert words_of(folder_made / "chat.svg") == words_of(pictures / "chat.svg"), "Run: make pictures"
    # How a reply is cut into events is up to the clock.
    for folder in (pictures, folder_made):
        before, killed, after = read_text(folder / "killed.svg").partition("kill -9 SERVER")
        assert killed and "TOOL_CALL_RESULT" in before and "TOOL_CALL_RESULT" not in after
        assert "recto.discarded" in after
        assert "The answer, whole: I was killed in the middle of this sentence, and went on." in after


def read_text(picture: Path) -> str:
    lines = re.findall(r"<text [^>]*>(.*?)</text>", picture.read_text(encoding="utf-8"))
    return unescape("\n".join(lines)).replace("\xa0", " ")


def words_of(picture: Path) -> str:
    return CHANGING.sub(" ", read_text(picture))
