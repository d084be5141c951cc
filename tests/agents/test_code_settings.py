"""R15, X5: what an agent that works on code may be told: where, what is asked first, what placeholders say."""

from pathlib import Path

import pytest

from recto.page.fold.fold_settings import ON
from tests.agents.test_agent_file import agent


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ("tools: [recall]\nfold: {recall_hint: true}", " (the recall tool gets it back)"),
        ("tools: [recall]\nlocale: zh\nfold: {recall_hint: true}", "（可用 recall 取回原文）"),
        ("tools: [recall]", ""),
        ("fold: {recall_hint: true}", ""),
    ],
)
def test_X5_placeholders_tell_of_recall_where_the_agent_has_it_and_wants_that(tmp_path: Path, settings: str, hint: str):
    assert [one.placeholder for one in agent(tmp_path, settings).fold.rules] == [one.placeholder + hint for one in ON]


def test_R2_placeholders_are_the_same_in_every_language_unless_an_agent_says_its_own(tmp_path: Path):
    for locale in ("zh", "en"):
        settings = f"locale: {locale}\nfold: {{search: true, terminal: {{placeholder: gone}}}}"
        assert [one.placeholder for one in agent(tmp_path, settings).fold.rules] == [
            "[该文件的历史读取内容已压缩,请参看最新读取结果]",
            "gone",
            "本次搜索结果已过时,故精简为占位符",
        ]


def test_R15_an_agent_may_have_a_folder_to_work_in_and_a_mode(tmp_path: Path):
    (tmp_path / "_project").mkdir()
    agent_folder = agent(tmp_path, "workspace: ../_project\nmode: edits")
    assert (agent_folder.workspace, agent_folder.mode) == (tmp_path / "_project", "edits")
    assert (agent(tmp_path, "").workspace, agent(tmp_path, "").mode) == (None, None)
