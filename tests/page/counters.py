"""Token counters that tests can reckon with in their heads."""

from collections.abc import Sequence


class WordCounter:
    """A token for each word. `asked` is every text it ever counted, in order."""

    name = "words"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count(self, texts: Sequence[str]) -> Sequence[int]:
        self.asked += texts
        return [len(text.split()) for text in texts]


class CharacterCounter:
    """A token for each character: nothing is free, not even the end of a line."""

    name = "characters"

    def count(self, texts: Sequence[str]) -> Sequence[int]:
        return [len(text) for text in texts]
