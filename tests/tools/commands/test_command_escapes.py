"""R15: ways out of the sandbox, tried from inside: nothing outside is read, changed or ended, and each ends soon."""

import os
import re
import socket
import stat
import subprocess
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from recto.tools.commands.masks import LINKED
from recto.tools.commands.placeholders import BEFORE
from recto.tools.workspace.workspaces import Workspace, Workspaces
from tests.tools.commands.terminals import Console, console
from tests.tools.commands.test_terminal_execute import none_left

SECRET = "the-secret-that-nobody-reads"
OUT = "ESC" + "APED"
LEFTOVER = "left-by-a-command"
SECONDS = 15
# Ways out, by name. Each prints the secret, or the word, where it gets out, and does no harm where it does: what is not
# made for the test is opened, not written. Names between @ are those of the place.
WAYS = dict(way.split("\n", 1) for way in Path(__file__).with_name("ways_out.txt").read_text().split("=== ")[1:])
# What is tried in the fast tier: one of each kind of wall.
QUICK = (
    *("read: a file beside the workspace", "read: the environment of all processes", "read: a port of this machine"),
    *("read: what is hidden in the workspace", "write: settings of the kernel", "write: rights of the owner"),
    *("write: new namespaces", "kill: a daemon"),
)
SWAP = """
import os
while True:
    for one in ("aside", "link"):
        os.rename(one, ".git")
        os.rename(".git", one)
"""
CALLS = {"x86_64": (250, (298, 321, 323, 425)), "aarch64": (219, (241, 280, 282, 425))}


@dataclass(frozen=True, kw_only=True)
class Place:
    """A workspace and the targets around it. `names` fill in the placeholders of commands."""

    console: Console
    outside: Path
    victim: subprocess.Popen[bytes]
    names: Mapping[str, object]


@pytest.fixture
def outside() -> Generator[Path]:
    """Return a folder with a short name, as sockets need."""
    with TemporaryDirectory(prefix="r") as folder:
        yield Path(folder)


@pytest.fixture
def place(outside: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Place]:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    (outside / "secret.txt").write_text(SECRET)
    work = outside / "work"
    (work / "data").mkdir(parents=True)
    (work / "data/secret.txt").write_text(SECRET)
    (work / "recto.toml").write_text("# guarded")
    workspace = Workspace(folder=work, is_own=False, most_bytes=0, hidden=("data",), guarded=("recto.toml",))
    listening = [socket.create_server(("0.0.0.0", 0)), unix(f"\0{outside.name}"), unix(f"{outside}/socket")]
    for one in listening:
        threading.Thread(target=give_away, args=(one,), daemon=True).start()
    victim = subprocess.Popen(["sleep", "60"], start_new_session=True)
    keyctl, calls = CALLS[os.uname().machine]
    names = {"outside": outside, "home": Path.home(), "pid": os.getpid(), "victim": victim.pid, "word": OUT}
    names |= {"port": listening[0].getsockname()[1], "abstract": outside.name, "part": SECRET[:12]}
    names |= {"address": own_address(), "keyctl": keyctl, "calls": calls}
    # Held by this process while commands run: nothing of it is inherited.
    with (outside / "secret.txt").open() as file:
        os.set_inheritable(file.fileno(), True)
        yield Place(console=console(work, workspace=workspace), outside=outside, victim=victim, names=names)
    victim.kill()
    victim.wait()
    for one in listening:
        # Who waits for a connection is told that there will be none.
        one.shutdown(socket.SHUT_RDWR)
        one.close()


def unix(name: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.bind(name)
    connection.listen()
    return connection


def give_away(listening: socket.socket) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        connection.sendall(SECRET.encode())
        connection.close()


def own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.2"
        return str(probe.getsockname()[0])


def tree(folder: Path) -> dict[str, bytes | int]:
    """Return all files outside the workspace, and those in it that are not the command's."""
    work, data = folder / "work", folder / "work/data"
    escaped_paths = [path for path in folder.rglob("*") if not path.is_relative_to(work) or path.is_relative_to(data)]
    files = {str(path): path.read_bytes() for path in (*escaped_paths, work / "recto.toml") if path.is_file()}
    return {**files, **{str(path): stat.S_IMODE(path.lstat().st_mode) for path in escaped_paths if not path.is_file()}}


def fill(command: str, place: Place) -> str:
    return re.sub("@([a-z]+)@", lambda match: str(place.names[match[1]]), command)


async def got_out(place: Place, command: str) -> list[str]:
    """Return the effects of an escape: what it read, changed, ended or left."""
    before = tree(place.outside)
    answer = await place.console.say(fill(command, place), timeout=SECONDS * 1_000)
    await none_left(LEFTOVER)
    modes = [path.lstat().st_mode for path in place.console.folder.rglob("*") if not path.is_symlink()]
    outcomes = {
        f"it was read: {answer}": SECRET in answer or OUT in answer,
        f"it took too long: {answer}": "it took longer than" in answer,
        "something outside is not what it was": tree(place.outside) != before,
        "a process outside was ended": place.victim.poll() is not None,
        "a program that acts as its owner was left": any(mode & (stat.S_ISUID | stat.S_ISGID) for mode in modes),
        "a device was left": any(stat.S_ISBLK(mode) or stat.S_ISCHR(mode) for mode in modes),
    }
    return [what for what, is_so in outcomes.items() if is_so]


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in WAYS if name not in QUICK])
async def test_R15_no_way_leads_out_of_the_sandbox(place: Place, name: str):
    assert await got_out(place, WAYS[name]) == []


async def test_R15_none_of_the_usual_ways_leads_out_of_the_sandbox(place: Place):
    for name in QUICK:
        assert await got_out(place, WAYS[name]) == []


async def test_R15_each_of_these_ways_would_lead_out_where_there_is_no_sandbox(place: Place):
    """Prove that the checks can find something: a table that never does proves nothing."""
    open_console = console(place.console.folder, is_confined=False)
    for name in ("read: a file beside the workspace", "read: a port of this machine", "read: a file by a path upwards"):
        assert SECRET in await open_console.say(fill(WAYS[name], place)), name


# Links in the place of what is guarded, made by one command for the next


@dataclass(frozen=True, kw_only=True)
class Linked:
    """Return a given folder without a repository beside secrets. All its commands share one Workspace."""

    console: Console
    outside: Path

    async def tell(self, command: str) -> str:
        return await self.console.say(command, timeout=SECONDS * 1_000)

    @property
    def is_untouched(self) -> bool:
        return sorted(one.name for one in self.outside.iterdir()) == ["secret.txt", "work"]


@pytest.fixture
def linked(outside: Path) -> Linked:
    (outside / "secret.txt").write_text(SECRET)
    work = outside / "work"
    (work / "conf/agents").mkdir(parents=True)
    (work / "data").mkdir()
    guarded = (work / "conf/agents", work / "agents/mine")
    workspaces = Workspaces(root=outside / "own", given_folder=work, private=(work / "data",), guarded=guarded)
    return Linked(console=console(work, workspace=workspaces.of("t1")), outside=outside)


# Where a link may lead: beside the workspace and by its whole path, out of what bubblewrap builds, and to the system.
TARGETS = (
    *("..", "{outside}", "../../../../../..{outside}", "/", "/oldroot", "../../../../oldroot{outside}", "/newroot"),
    *("/proc", "/proc/self/root", "/proc/self/cwd", "/proc/1/root", "/dev", "/dev/shm", "/usr", "/etc", "/tmp"),
)


@pytest.mark.parametrize("name", [".git", "agents"])
@pytest.mark.parametrize("target", TARGETS)
async def test_R15_a_link_in_the_place_of_what_is_guarded_has_the_next_command_refused(
    linked: Linked, target: str, name: str
):
    await linked.tell(f"ln -s {target.format(outside=linked.outside)} {name}")
    answer = await linked.tell(f"cat {name}/secret.txt {name}/*/secret.txt; echo x > {name}/planted; ls -A {name}")
    assert answer == LINKED.format(path=name)
    assert linked.is_untouched
    # A link is what it was, and who takes it away has commands again.
    (linked.console.folder / name).unlink()
    assert '"exitCode":0' in await linked.tell("true")


@pytest.mark.parametrize("place", ["conf", "conf/agents", "data"])
async def test_R15_what_is_kept_cannot_be_made_a_link_by_a_command(linked: Linked, place: str):
    await linked.tell(f"mv {place} aside; rm -rf {place}; ln -sfn {linked.outside} {place}; rmdir {place}")
    assert not (linked.console.folder / place).is_symlink()
    assert '"exitCode":0' in await linked.tell("true")


@pytest.mark.full
@pytest.mark.parametrize("is_other", [False, True])
@pytest.mark.parametrize("target", ["..", "../../../../../oldroot{outside}"])
async def test_R15_a_link_that_is_swapped_with_a_folder_all_the_time_leads_no_command_out(
    linked: Linked, target: str, is_other: bool
):
    """Swap files by a job that began before the repository; a job of another server is unknown here."""
    swap = f"mkdir aside; : > aside/HEAD; ln -s {target.format(outside=linked.outside)} link; exec python3 -c '{SWAP}'"
    job = (await linked.console.execute(swap, background=True))["job"]
    other = console(linked.console.folder, workspace=linked.console.context.workspace) if is_other else linked.console
    attempts = [await other.say("cat .git/secret.txt ../secret.txt; echo x > .git/planted") for _ in range(40)]
    await linked.console.jobs("end", job)
    assert not [text for text in attempts if SECRET in text]
    assert linked.is_untouched


async def test_R15_no_command_starts_beside_a_job_that_began_before_there_was_a_repository(linked: Linked):
    job = (await linked.console.execute("sleep 60", background=True))["job"]
    assert '"exitCode":0' in await linked.tell("mkdir -p .git/hooks; : > .git/HEAD")
    assert await linked.tell("true") == BEFORE.format(place=".git/hooks")
    await linked.console.jobs("end", job)
    assert '"exitCode":0' in await linked.tell("true")


def test_R15_the_table_of_ways_is_long_enough():
    assert (len(WAYS) >= 56, len(TARGETS) >= 16, set(QUICK) <= set(WAYS)) == (True, True, True)
