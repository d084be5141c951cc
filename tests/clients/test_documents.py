"""The code of clients that documents show: what Node can run is run, what a page needs is in a page under test."""

import os
import subprocess

import pytest

from recto.testing.model_server import Answer
from tests.api.scripted_server import ALICE, Scripted
from tests.clients.node import FOLDER, NODE
from tests.clients.scripts import call, model_page, script
from tests.test_docs import ADDRESS
from tests.test_examples import blocks_of

DOCUMENTS = ("docs/ag-ui.md", "docs/copilotkit.md")
PACKAGES = ("@ag-ui/client", "@ag-ui/client-1.0")


@pytest.mark.full
@pytest.mark.parametrize("package", PACKAGES)
def test_P15_the_programs_of_the_documents_run(server: Scripted, package: str):
    first, second, _ = blocks_of("docs/ag-ui.md", "js")
    script(server, Answer(text="From 1848."))
    assert output_of(first, server, package) == "From 1848."
    script(server, Answer(calls=(call("clock", "{}"),)), Answer(text="Time for tea."))
    assert output_of(second, server, package) == "Time for tea.\n"
    assert "GMT" in model_page(server)[-1]


@pytest.mark.full
def test_P15_the_front_end_of_the_readme_runs_with_a_token_and_a_place_to_show_words(server: Scripted):
    (block,) = blocks_of("README.md", "ts")
    around = "const token = process.env.RECTO_TOKEN, show = (words) => process.stdout.write(words);"
    script(server, Answer(text="There are 3."))
    assert output_of(f"{around}\n{block.replace('/shop', '/helper')}", server, PACKAGES[-1]) == "There are 3."


@pytest.mark.full
def test_P15_the_program_that_agrees_to_calls_runs_with_the_newest_client(server: Scripted):
    script(server, Answer(calls=(call("send", '{"text": "We meet at nine."}'),)), Answer(text="They know."))
    assert output_of(blocks_of("docs/ag-ui.md", "js")[-1], server, PACKAGES[-1]) == "They know.\n"
    assert model_page(server)[-1] == "tool: Sent: We meet at nine."


def test_P15_the_pages_of_the_documents_are_those_that_are_tested():
    tested = [lines_of(path.read_text("utf-8")) for path in (FOLDER / "pages").glob("*.jsx")]
    shown_lines = [lines_of(block) for document in DOCUMENTS for block in blocks_of(document, "jsx")]
    assert len(shown_lines) == 5
    assert [block for block in shown_lines if not any(block in page for page in tested)] == []


def output_of(program: str, server: Scripted, package: str) -> str:
    """Run a program in the folder of the packages. Return its output."""
    text = program.replace(ADDRESS, server.url).replace('"@ag-ui/client"', f'"{package}"')
    done = subprocess.run(
        [*NODE, "--input-type=module", "-e", text],
        cwd=FOLDER,
        env={**os.environ, "RECTO_TOKEN": ALICE},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines_of(text: str) -> str:
    """Return a text without indentation."""
    return "\n".join(line.strip() for line in text.strip().splitlines())
