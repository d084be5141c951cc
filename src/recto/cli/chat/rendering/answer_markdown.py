"""Markdown of answers. Code has no empty lines around it, so that a long block can be printed in pieces."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Markdown, MarkdownElement
from rich.padding import Padding
from rich.syntax import Syntax


class PlainCode(CodeBlock):
    """Code block, indented by two columns."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the block."""
        code = Syntax(str(self.text).rstrip(), self.lexer_name, theme=self.theme, word_wrap=True)
        yield Padding(code, (0, 0, 0, 2))


class AnswerMarkdown(Markdown):
    """Markdown with `PlainCode` blocks."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": PlainCode,
        "code_block": PlainCode,
    }
