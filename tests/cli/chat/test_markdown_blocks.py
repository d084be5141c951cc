"""An answer in blocks of Markdown: what is let go, and when."""

import pytest

from recto.cli.chat.rendering.markdown_blocks import MOST_CHARACTERS, MOST_LINES, Chunk, Tail, split_all, split_complete

ANSWER = """# Title
Some words
over two lines

- one
  more of it

  and more
- two

Text:
```python
def f():

    return 1
```
| a | b |
|---|---|
| 1 | 2 |

> quoted
> lines

the end"""
BLOCKS = [
    "# Title\n",
    "Some words\nover two lines\n",
    "- one\n  more of it\n\n  and more\n- two\n\n",
    "Text:\n",
    "```python\ndef f():\n\n    return 1\n```\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "> quoted\n> lines\n",
    "the end\n",
]


def streamed(text: str, piece: int) -> list[Chunk]:
    """The chunks of a text that comes in pieces."""
    chunks_found, tail = list[Chunk](), Tail()
    for at in range(0, len(text), piece):
        whole, tail = split_complete(tail.append(text[at : at + piece]))
        chunks_found += whole
    return [*chunks_found, *split_all(tail)]


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_blocks_are_the_same_however_the_words_come(piece: int) -> None:
    assert [chunk.text for chunk in streamed(ANSWER, piece)] == BLOCKS


@pytest.mark.parametrize(
    ("start", "whole", "rest"),
    [
        ("Half a para", [], "Half a para"),
        ("A line\n", [], "A line\n"),
        ("A line\n\n", ["A line\n"], ""),
        ("- one\n\n", [], "- one\n\n"),
        ("- one\n\nText\n", ["- one\n\n"], "Text\n"),
        ("```\ncode\n\nmore\n", [], "```\ncode\n\nmore\n"),
        ("```\ncode\n~~~\n", [], "```\ncode\n~~~\n"),
        ("````\n```\ncode\n```\n", [], "````\n```\ncode\n```\n"),
        ("```\ncode\n`````\nText\n", ["```\ncode\n`````\n"], "Text\n"),
        ("| a | b |\n", [], "| a | b |\n"),
        ("# A\n## B\n", ["# A\n", "## B\n"], ""),
        ("A line\n```\nx\n```\n", ["A line\n", "```\nx\n```\n"], ""),
        ("\n\n\n", [], ""),
    ],
)
def test_only_complete_blocks_are_released(start: str, whole: list[str], rest: str) -> None:
    chunks, tail = split_complete(Tail(text=start))
    assert [chunk.text for chunk in chunks] == whole
    assert tail.visible_text.lstrip("\n") == rest


@pytest.mark.parametrize(
    ("opening", "line"),
    [("```python\n", "x = 1\n"), ("| a |\n|---|\n", "| 1 |\n"), ("", "- item\n"), ("", "words and words\n")],
)
def test_a_long_block_is_released_in_complete_pieces(opening: str, line: str) -> None:
    tail, chunks = Tail(text=opening), list[Chunk]()
    for _ in range(10_000):
        whole, tail = split_complete(tail.append(line))
        chunks += whole
        assert tail.text.count("\n") <= MOST_LINES
    chunks += split_all(tail)
    assert sum(chunk.text.count(line) for chunk in chunks) == 10_000
    assert all(chunk.text.startswith(opening) for chunk in chunks)
    assert [chunk.joins for chunk in chunks[:3]] == [False, True, True]
    if opening.startswith("```"):
        assert all(chunk.text.endswith("```\n") for chunk in chunks)


@pytest.mark.parametrize("opening", ["```json\n", "| a |\n|---|\n", "- ", "# ", ""])
@pytest.mark.parametrize("words", ["x" * 50, "word " * 10])
def test_one_long_line_is_bounded_in_a_block_of_any_kind(opening: str, words: str) -> None:
    tail, spoken_text = Tail(text=opening), ""
    for _ in range(1_000):
        chunks, tail = split_complete(tail.append(words))
        spoken_text += "".join(chunk.text for chunk in chunks)
        assert len(tail.text) <= MOST_CHARACTERS + len(words)
    spoken_text += "".join(chunk.text for chunk in split_all(tail))
    assert spoken_text.count(words[0]) == 1_000 * words.count(words[0])


def test_a_fence_that_is_let_go_in_pieces_ends_with_a_mark_like_its_own() -> None:
    code = "x = 1\n```\n~~~\n" * MOST_LINES
    chunks = streamed(f"````md\n{code}````\nText\n", 7)
    assert len(chunks) > 2
    assert all(chunk.text.startswith("````md\n") and chunk.text.endswith("\n````\n") for chunk in chunks[:-1])
    assert chunks[-1].text == "Text\n"
