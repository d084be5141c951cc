"""Servers of `recto chat`: named, joined or started; and its language."""

from pathlib import Path

import pytest

from recto.testing.model_server import Answer, ModelServer
from recto.testing.process import ServerProcess, free_port
from tests.support.client import TOKEN
from tests.terminal.chat_world import wait_idle
from tests.terminal.terminal import RECTO, Terminal

pytestmark = pytest.mark.full


def chat(folder: Path, *flags: str, size: tuple[int, int] = (80, 24), **settings: str) -> Terminal:
    environment = {"HOME": str(folder / "home"), **settings}
    return Terminal((*RECTO, "chat", *flags), folder=folder, settings=environment, size=size)


def test_two_terminals_share_a_server_and_the_second_takes_over(tmp_path: Path) -> None:
    (tmp_path / "recto-data").mkdir()
    # What one that was killed left behind: nobody holds the folder.
    (tmp_path / "recto-data" / "address").write_text("http://127.0.0.1:1", encoding="ascii")
    with chat(tmp_path) as first, chat(tmp_path) as second:
        here = first.wait_for("chat on http://127.0.0.1:", 60)
        there = second.wait_for("chat on http://127.0.0.1:", 60)
        assert address_in(here) == address_in(there)
        second.say("What is 3 * 4?")
        second.wait_for("3 * 4 = 12.")
        assert (tmp_path / "recto-data" / "address").read_text(encoding="ascii") == address_in(here)
        assert (tmp_path / "recto-data" / "chat.log").exists()
        wait_idle(second)
        serves, follower = (first, second) if is_served_by(tmp_path, first) else (second, first)
        serves.press("ctrl-d")
        assert serves.wait_end() == 0
        follower.say("What is 5 * 6?")
        follower.wait_for("5 * 6 = 30.", 60)
        assert "This terminal now serves recto-data" in follower.screen()
        wait_idle(follower)
        follower.press("ctrl-d")
        assert follower.wait_end() == 0
        assert not (tmp_path / "recto-data" / "address").exists()


def is_served_by(folder: Path, terminal: Terminal) -> bool:
    """Return True if the terminal's process has the database of the folder open."""
    files = [path.readlink() for path in Path(f"/proc/{terminal.pid}/fd").iterdir()]
    return folder / "recto-data" / "recto.db" in files


def address_in(screen: str) -> str:
    return screen.partition("chat on ")[2].partition(". ")[0]


def test_chat_joins_the_server_of_the_folder_or_connects_to_a_named_one(tmp_path: Path) -> None:
    with ServerProcess.serve(tmp_path / "recto-data", {}, token=None) as server:
        # The command line decides before the environment.
        with chat(tmp_path, "--data", "recto-data", RECTO_URL="http://127.0.0.1:1") as client:
            assert address_in(client.wait_for("chat on http")) == server.url
            client.say("What is 3 * 4?")
            client.wait_for("3 * 4 = 12.")
        token = (tmp_path / "recto-data" / "token").read_text(encoding="ascii").strip()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        with chat(elsewhere, "--server", server.url, "--resume", RECTO_TOKEN=token) as remote:
            remote.wait_for("❯ What is 3 * 4?")
            remote.press("enter")
            remote.wait_for("3 * 4 = 12.")
        with chat(elsewhere, "--server", server.url, RECTO_TOKEN="wrong") as stranger:
            assert stranger.wait_end() == 1
            assert "recto chat: " in stranger.screen()


def test_a_chinese_locale_without_colours_aligns_wide_characters(tmp_path: Path) -> None:
    with ServerProcess.serve(tmp_path / "recto-data", {}, token=None):
        for words in ("读一下灯塔的故事", "Lighthouses"):
            with chat(tmp_path, LANG="zh_CN.UTF-8", NO_COLOR="1") as terminal:
                terminal.wait_for("/help 查看按键和命令")
                terminal.say(words)
                terminal.wait_for("RECTO_MODEL")
                wait_idle(terminal)
        with chat(tmp_path, "--resume", LANG="zh_CN.UTF-8", NO_COLOR="1", size=(80, 20)) as terminal:
            screen = terminal.wait_for("读一下灯塔的故事")
            assert "打开哪个对话？" in screen
            rows = [terminal.row("读一下灯塔的故事"), terminal.row("Lighthouses")]
            starts = [terminal.lines()[row].index("刚刚") for row in rows]
            columns = [
                sum(2 if ord(letter) > 0x1100 and letter != "❯" else 1 for letter in terminal.lines()[row][:at])
                for row, at in zip(rows, starts, strict=True)
            ]
            assert columns[0] == columns[1]
            assert all(cell.fg == "default" for row in range(20) for cell in terminal.cells(row))
            terminal.resize(40, 15)
            terminal.wait_for(lambda screen: "─" * 40 in screen and "─" * 41 not in screen)


def test_messages_reach_a_named_server_after_it_returns(tmp_path: Path) -> None:
    port = free_port()
    with ModelServer(lambda _: Answer(text="Here I am.")) as model:
        settings = {"RECTO_MODEL": "compatible:scripted", "RECTO_MODEL_URL": model.url, "RECTO_AGENT": "chat"}
        serve = ["recto", "serve", "--port", str(port), "--data", str(tmp_path / "data")]
        command = (*RECTO, "chat", "--server", f"http://127.0.0.1:{port}")
        with ServerProcess(serve, settings):
            terminal = Terminal(command, folder=tmp_path, settings={"RECTO_TOKEN": TOKEN, "HOME": str(tmp_path)})
            terminal.wait_for("chat on")
        with terminal:
            terminal.say("Anybody?")
            terminal.wait_for("The server does not answer. Reconnecting")
            terminal.wait_for("› Anybody?  (queued)")
            with ServerProcess(serve, settings):
                terminal.wait_for("Here I am.")
                terminal.wait_gone("does not answer")
                assert terminal.wait_gone("(queued)").count("› Anybody?") == 1
