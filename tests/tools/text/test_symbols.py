"""R15: classes, functions and methods of a source, with their lines."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from recto.config.run_settings import FileToolSettings
from recto.tools.text.symbol_process import SymbolProcess, find_symbols
from recto.tools.text.symbols import BY_ENDING, LANGUAGES, find_symbols_here
from tests.waiting import wait_for

SOURCES = {
    "py": "class A:\n    async def b(self):\n        def c(): pass\n\n@x\ndef d(): pass\n",
    "js": "class A { m() {} }\nfunction f() {}\nconst g = () => 1;\nexport default class B {}\n",
    "ts": "interface I { a: string }\ntype T = 1;\nenum E {A}\n"
    "abstract class C { m(): void {} }\nnamespace N { function x() {} }\n",
    "tsx": "export function App() { return <div/> }\n",
    "go": "package a\ntype S struct { x int }\nfunc (s *S) M() {}\nfunc F() {}\n",
    "rs": "struct S;\nimpl S { fn m(&self) {} }\nfn f() {}\nmod x { fn y() {} }\ntrait T { fn z() {} }\n",
    "java": "public class A { A() {} void m() {} interface I {} record R(int x) {} }\n",
    "c": "struct S { int x; };\nstruct S make(void);\nstatic int *f(int a) { return 0; }\nenum E { A };\n",
    "cpp": "namespace n { class A { void m() {} }; }\nint& n::A::k(int) { return x; }\n",
    "cs": "namespace N { class A { A() {} void M() {} } }\n",
    "rb": "module M\n  class A\n    def x; end\n    def self.y; end\n  end\nend\n",
    "php": "<?php\nclass A { function m() {} }\nfunction f() {}\n",
    "sh": "f() { echo; }\nfunction g { echo; }\n",
}
SYMBOLS = {
    "py": "class A 1-3, .method b 2-3, ..function c 3-3, function d 6-6",
    "js": "class A 1-1, .method m 1-1, function f 2-2, function g 3-3, class B 4-4",
    "ts": "interface I 1-1, type T 2-2, enum E 3-3, class C 4-4, .method m 4-4, namespace N 5-5, .function x 5-5",
    "tsx": "function App 1-1",
    "go": "type S 2-2, method M 3-3, function F 4-4",
    "rs": "struct S 1-1, impl S 2-2, .method m 2-2, function f 3-3, "
    "module x 4-4, .function y 4-4, trait T 5-5, .method z 5-5",
    "java": "class A 1-1, .method A 1-1, .method m 1-1, .interface I 1-1, .record R 1-1",
    "c": "struct S 1-1, function f 3-3, enum E 4-4",
    "cpp": "namespace n 1-1, .class A 1-1, ..method m 1-1, function n::A::k 2-2",
    "cs": "namespace N 1-1, .class A 1-1, ..method A 1-1, ..method M 1-1",
    "rb": "module M 1-6, .class A 2-5, ..method x 3-3, ..method y 4-4",
    "php": "class A 2-2, .method m 2-2, function f 3-3",
    "sh": "function f 1-1, function g 2-2",
}


def outline(source: str, ending: str) -> str:
    symbols = find_symbols_here(source.encode(), f"a.{ending}")
    return ", ".join(f"{'.' * one.depth}{one.kind} {one.name} {one.first}-{one.last}" for one in symbols)


@pytest.mark.parametrize("ending", SOURCES)
def test_R15_each_language_has_its_symbols(ending: str):
    assert outline(SOURCES[ending], ending) == SYMBOLS[ending]


def test_R15_every_language_is_tried_and_errors_in_a_source_leave_what_is_sound():
    assert [BY_ENDING[ending] for ending in SOURCES] == [*LANGUAGES]
    assert "function y 4-4" in outline("class A(:\n  def x(\n\ndef y(): pass\n", "py")


# The process that finds them

OWNER = """
import os, sys
from recto.tools.text.symbol_process import SymbolProcess
process = SymbolProcess(2**30)
process.find(b"def f(): pass", "py", 30)
print(process.pid, flush=True)
sys.stdin.read()
"""
# What a grammar takes minutes for.
SLOW = b"-/*" * 8_000


@pytest.fixture
def process() -> Iterator[SymbolProcess]:
    one = SymbolProcess(FileToolSettings.symbol_memory_bytes)
    yield one
    one.end()


def found_in(process: SymbolProcess, source: bytes) -> list[str]:
    return [symbol.name for symbol in process.find(source, "py", 30)]


def test_R15_a_process_of_its_own_finds_the_same_and_none_without_a_grammar_or_beyond_the_limit():
    assert find_symbols(SOURCES["py"].encode(), "src/a.PY") == find_symbols_here(SOURCES["py"].encode(), "a.py")
    assert find_symbols(b"x", "a.unknown") == find_symbols(b"x", "Makefile") == ()
    assert find_symbols(b"def f(): pass\n" * FileToolSettings.symbol_bytes, "a.py") == ()


def test_R15_the_process_stays_and_one_that_was_killed_is_started_anew(process: SymbolProcess):
    assert process.pid is None
    assert found_in(process, b"def f(): pass") == ["f"]
    first = process.pid
    assert (found_in(process, b""), found_in(process, b"def g(): pass"), process.pid) == ([], ["g"], first)
    assert first
    os.kill(first, signal.SIGKILL)
    assert found_in(process, b"def h(): pass") == ["h"]
    assert process.pid not in (None, first)


def test_R15_a_source_made_to_take_minutes_has_no_symbols_in_time_and_harms_no_other(process: SymbolProcess):
    assert found_in(process, b"def f(): pass") == ["f"]
    assert process.find(SLOW, "c", 0.1) == ()
    assert found_in(process, b"def f(): pass") == ["f"]


def test_R15_who_waits_for_a_slow_source_does_without_symbols(process: SymbolProcess):
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(process.find, SLOW, "c", 30)
        pid = wait_for(lambda: process.pid, "the process that has the turn")
        assert process.find(b"def f(): pass", "py", 0.01) == ()
        assert pid
        os.kill(pid, signal.SIGKILL)
        assert slow.result() == ()


def test_R15_many_at_once_get_each_their_own(process: SymbolProcess):
    with ThreadPoolExecutor(8) as pool:
        tasks = [pool.submit(found_in, process, f"def f{number}(): pass".encode()) for number in range(64)]
    assert [one.result() for one in tasks] == [[f"f{number}"] for number in range(64)]


@pytest.mark.full
def test_R15_a_source_that_needs_more_memory_than_there_may_be_has_no_symbols():
    small = FileToolSettings(symbol_bytes=2**26, symbol_seconds=30, symbol_memory_bytes=2**27)
    assert find_symbols(b"x" * 2**26, "a.py", small) == ()


def test_R15_the_process_ends_with_the_one_that_started_it():
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with owner:
        assert owner.stdout
        watched = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    readable, _, _ = select.select([watched], [], [], 30)
    os.close(watched)
    assert readable
