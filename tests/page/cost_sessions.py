"""Seeded random sessions of a coder: reads, edits that quote, commands, mistakes; and settings to fold them by cost."""

import json
from dataclasses import dataclass, field
from random import Random

from recto.conversation.messages import AssistantMessage, Message, Text, ToolCall, ToolMessage, UserMessage
from recto.page.fold.fold_settings import CachePrices, CostSettings, FoldSettings
from recto.page.fold.rules import READS, SEARCH, TERMINAL

FILES = {f"f{number}.py": [f"line {place} of file {number}" for place in range(4)] for number in range(3)}
FOLDING = (READS, TERMINAL, SEARCH)
READ, EDIT, COMMAND, FIND = "filesystem-read", "filesystem-edit", "terminal-execute", "ace-text_search"


@dataclass(kw_only=True)
class CostSession:
    """A conversation that grows, and what it is folded by."""

    chance: Random
    messages: list[Message] = field(default_factory=list[Message])
    settings: CostSettings = field(default_factory=CostSettings)
    prices: CachePrices = CachePrices(1, 10)

    @property
    def fold(self) -> FoldSettings:
        return FoldSettings(rules=FOLDING, cost=self.settings)

    def go_on(self) -> None:
        """A user's words, or a reply of the model with its results."""
        if not self.messages or self.chance.random() < 0.15:
            self.messages.append(UserMessage(id=self._id("u"), parts=(Text(text="go on"),)))
            return
        calls = [self._call() for _ in range(self.chance.choice((0, 1, 1, 1, 2)))]
        parts = (Text(text="Well."), *[call for call, _ in calls])
        self.messages.append(AssistantMessage(id=self._id("a"), parts=parts))
        for call, text in calls:
            if self.chance.random() < 0.95:
                self.messages.append(ToolMessage(id=self._id("r"), tool_call_id=call.id, parts=(Text(text=text),)))

    def _id(self, kind: str) -> str:
        return f"{kind}{len(self.messages)}"

    def _call(self) -> tuple[ToolCall, str]:
        kind = self.chance.choice(
            (self._read, self._read, self._edit, self._edit, self._command, self._find, self._odd)
        )
        name, arguments, text = kind()
        text = "Error: no" if self.chance.random() < 0.1 else text
        id = f"c{len(self.messages)}-{self.chance.random()}"
        return ToolCall(id=id, name=name, arguments=arguments), text

    def _read(self) -> tuple[str, str, str]:
        path = self.chance.choice(list(FILES))
        lines = FILES[path]
        if self.chance.random() < 0.3:
            return READ, json.dumps({"filePath": f"./{path}", "startLine": 2}), "\n".join(lines[1:])
        names = [path, self.chance.choice(list(FILES))] if self.chance.random() < 0.15 else path
        return READ, json.dumps({"filePath": names}), "\n".join(f"{at}→{line}" for at, line in enumerate(lines))

    def _edit(self) -> tuple[str, str, str]:
        path = self.chance.choice(list(FILES))
        old = "\n".join(self.chance.sample(FILES[path], self.chance.randint(0, 2)))
        arguments = {"filePath": path, "searchContent": old, "replaceContent": "new"}
        if self.chance.random() < 0.2:
            arguments = {"filePath": path, "edits": [{"search": f"  {old}\n\n", "replace": "x"}]}
        return EDIT, json.dumps(arguments), f"- {old}\n+ new"

    def _command(self) -> tuple[str, str, str]:
        visible_rows = self.chance.choice(list(FILES.values()))
        report = {"stdout": "\n".join(visible_rows), "exitCode": self.chance.choice((0, 0, 1))}
        return COMMAND, '{"command": "cat"}', self.chance.choice((json.dumps(report), "\n".join(visible_rows), "ok"))

    def _find(self) -> tuple[str, str, str]:
        return FIND, "{}", "\n".join(line for lines in FILES.values() for line in lines[:2])

    def _odd(self) -> tuple[str, str, str]:
        return self.chance.choice((("poem", "{}", "roses are red"), (READ, "{", "??"), (EDIT, "[]", "done")))


def make_session(seed: int) -> CostSession:
    """The same session and settings for the same seed."""
    chance = Random(seed)
    pick = chance.randint
    settings = CostSettings(
        window=pick(0, 4),
        edited_window=pick(1, 8),
        read_window=pick(2, 14),
        turn_calls=pick(0, 6),
        quoting_edits=pick(1, 6),
        touched_share=chance.choice((0.0, 0.5, 0.9, 1.0)),
        least_result=pick(0, 6),
        least_page=pick(0, 60),
        least_step=pick(0, 20),
        horizon=chance.choice((0.1, 0.5, 2.0)),
        payback=chance.choice((0.05, 0.2, 1.0)),
        placeholder="gone",
    )
    read = chance.choice((1, 5, 10))
    return CostSession(chance=chance, settings=settings, prices=CachePrices(read, chance.choice((10, 12))))
