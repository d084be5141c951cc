"""Documents in the page: which ones, their joined text, and the quote that carries them within its own budget.

Nothing is parsed or read here: the documents' texts come in as values (D2, D4, D5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple, TypeAlias

from recto.page.boundary import boundary
from recto.page.input_files import InputFile, one_line
from recto.page.messages import Source
from recto.page.reminder import OUR_TAGS, neutralise
from recto.page.tokens import TokenCounter

READ_DOCUMENTS_DESCRIPTION = "解析对话中所有上传的文档，并返回对应文档内容"
QUOTE_TEMPLATE = "将 <Quote></Quote> 中的内容作为本次对话的参考:\n<Quote>\n{{quote}}\n</Quote>"
DOCUMENT_TEMPLATE = "File: {name}\n<Content>\n{content}\n</Content>"
SEPARATOR = "\n******\n"
CUT_DOCUMENT = "[内容过长，已截断：以上为前 {shown} 个字符，共 {total} 个；可用 read_files 读取全文]"
CUT_TEXT = "[内容过长，已截断：以上为前 {shown} 个字符，共 {total} 个]"
CUT_REASON = "cut to fit the quote's budget of {budget} tokens: {cuts}"
LEFT_OUT_REASON = "left out: the quote's budget of {budget} tokens holds none of it"
# A given text may be joined documents, so its <Content> blocks are its own; it must not end the quote.
TEXT_TAGS = tuple(tag for tag in OUR_TAGS if tag != "Content")
# About as long as the mark of a cut: cutting less than that would only make it longer.
NEVER_CUT = 60
# A cut that fills this much of the budget is good enough; each further step counts the whole quote again.
FULL_ENOUGH = 0.98


@dataclass(frozen=True, kw_only=True)
class ParsedDocument:
    """A document's text. One that failed has the reason in its place."""

    name: str
    content: str
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class Cut:
    """What a document's block cost before and after it was cut. A given text is one block named `quote`."""

    name: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, kw_only=True)
class Quote:
    """The text of the quote's system message and what it costs; no more than its budget, always.

    `text` is empty where the budget holds not even the marks that say what was cut; `reason` tells the manifest.
    """

    text: str
    tokens_before: int
    tokens_after: int
    cuts: tuple[Cut, ...] = ()
    reason: str = ""


Quoted: TypeAlias = str | Sequence[ParsedDocument]


class _Try(NamedTuple):
    limit: int
    text: str
    tokens: int


def choose_documents(turns: Sequence[Sequence[InputFile]], max_files: int) -> tuple[InputFile, ...]:
    """The documents to read, of turns given oldest first: newest turn first, each once, at most `max_files` (D4)."""
    newest: dict[Source, InputFile] = {}
    for turn in reversed(turns):
        for one in turn:
            if one.kind == "document":
                newest.setdefault(one.file.source, one)
    return tuple(islice(newest.values(), max(0, max_files)))


def join_documents(documents: Sequence[ParsedDocument]) -> str:
    """The documents as one text (D5). Names and contents are neutralised, so that none can end its block."""
    return SEPARATOR.join(map(_block, documents))


def _block(document: ParsedDocument) -> str:
    return DOCUMENT_TEMPLATE.format(name=neutralise(one_line(document.name)), content=neutralise(document.content))


def quote_message(quote: Quoted, *, budget: int, counter: TokenCounter) -> Quote | None:
    """The system message that carries documents, or a text given by an agent or workflow (D2). Nothing: no message.

    Over the budget, the longest are cut first, all to the same length, each with a mark where it ends.
    """
    if not (quote.strip() if isinstance(quote, str) else quote):
        return None
    longest = max(map(len, _contents(quote)))
    whole, bare = _message(quote, longest), _message(quote, 0)
    tokens, least = counter.count((whole, bare))
    if tokens <= budget:
        return Quote(text=whole, tokens_before=tokens, tokens_after=tokens)
    if least > budget:
        reason = LEFT_OUT_REASON.format(budget=budget)
        return Quote(text="", tokens_before=tokens, tokens_after=0, cuts=_cuts(quote, None, counter), reason=reason)
    low, high = _Try(0, bare, least), _Try(longest, whole, tokens)
    widest = _widest(low, high, budget, lambda limit: _try(quote, limit, counter))
    cuts = _cuts(quote, widest.limit, counter)
    reason = CUT_REASON.format(budget=budget, cuts=", ".join(map(_told, cuts)))
    return Quote(text=widest.text, tokens_before=tokens, tokens_after=widest.tokens, cuts=cuts, reason=reason)


def _contents(quote: Quoted) -> Sequence[str]:
    return (quote,) if isinstance(quote, str) else [document.content for document in quote]


def _try(quote: Quoted, limit: int, counter: TokenCounter) -> _Try:
    text = _message(quote, limit)
    return _Try(limit, text, counter.count((text,))[0])


def _message(quote: Quoted, limit: int) -> str:
    shown = _cut_text(quote, limit) if isinstance(quote, str) else join_documents([_cut(one, limit) for one in quote])
    return QUOTE_TEMPLATE.replace("{{quote}}", shown)


def _cut_text(text: str, limit: int) -> str:
    return neutralise(_shortened(text, limit, CUT_TEXT), TEXT_TAGS)


def _cut(document: ParsedDocument, limit: int) -> ParsedDocument:
    return replace(document, content=_shortened(document.content, limit, CUT_DOCUMENT))


def _shortened(content: str, limit: int, mark: str) -> str:
    if not _is_cut(content, limit):
        return content
    shown = content[: boundary(content, limit)]
    said = mark.format(shown=len(shown), total=len(content))
    return f"{shown}\n{said}" if shown else said


def _is_cut(content: str, limit: int) -> bool:
    return len(content) > max(limit, NEVER_CUT)


def _widest(low: _Try, high: _Try, budget: int, attempt: Callable[[int], _Try]) -> _Try:
    """The longest cut found that the budget holds. `low` fits, `high` does not; all returned was counted."""
    aim = budget * (1 + FULL_ENOUGH) / 2
    guess = True
    while high.limit - low.limit > 1 and low.tokens < budget * FULL_ENOUGH:
        share = (aim - low.tokens) / (high.tokens - low.tokens) if guess else 0.5
        pivot = low.limit + round((high.limit - low.limit) * share)
        tried = attempt(min(max(pivot, low.limit + 1), high.limit - 1))
        low, high = (tried, high) if tried.tokens <= budget else (low, tried)
        guess = not guess
    return low


def _cuts(quote: Quoted, limit: int | None, counter: TokenCounter) -> tuple[Cut, ...]:
    """What became of each document that was cut to the limit, or of all when there is none: nothing is left of them."""
    if isinstance(quote, str):
        names, before = ["quote"], [neutralise(quote, TEXT_TAGS)]
        after = ["" if limit is None else _cut_text(quote, limit)]
    else:
        touched = [one for one in quote if limit is None or _is_cut(one.content, limit)]
        names, before = [one_line(one.name) for one in touched], [_block(one) for one in touched]
        after = ["" if limit is None else _block(_cut(one, limit)) for one in touched]
    tokens = counter.count((*before, *after))
    pairs = zip(names, tokens[: len(names)], tokens[len(names) :], strict=True)
    return tuple(Cut(name=name, tokens_before=was, tokens_after=now) for name, was, now in pairs)


def _told(cut: Cut) -> str:
    return f"{cut.name} {cut.tokens_before} -> {cut.tokens_after}"
