"""What the page about the coder shows of its file tools is what they answer."""

import json
import re
from pathlib import Path

from recto.conversation.messages import Text
from tests.house import ROOT
from tests.tools.workspace.calls import CREATE, EDIT, READ, call


def test_R15_the_page_shows_what_the_tools_answer(tmp_path: Path):
    page = (ROOT / "docs/coder.md").read_text(encoding="utf-8").partition("\n## Files\n")[2].partition("\n## ")[0]
    source = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert source
    (tmp_path / "src").mkdir()
    (tmp_path / "src/shop.py").write_text(source[1])
    shown = list[tuple[str, str, str]]()
    for section in page.split("\n### ")[1:]:
        name = next(one for one in (READ, EDIT, CREATE) if one in section.partition("\n")[0])
        shown += [
            (name, *pair) for pair in re.findall(r"```json\n(.*?)\n```\n+```text\n(.*?)\n```", section, re.DOTALL)
        ]
    assert len(shown) == 5
    for name, arguments, answer in shown:
        result = call(tmp_path, name, **json.loads(arguments))
        assert "\n".join(part.text for part in result.parts if isinstance(part, Text)) == answer
