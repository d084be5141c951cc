"""Documents in the page: their selection, their joined text, and the quote message with its own budget.

Texts arrive parsed (D2, D4, D5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TypeAlias

from recto.conversation.locale import language
from recto.conversation.message_files import InputFile, one_line
from recto.conversation.messages import Source, SystemMessage
from recto.page.prompt.reminder import OUR_TAGS, neutralise
from recto.page.text.cut import Try, is_cut, shorten, widest
from recto.page.text.tokens import TokenCounter

QUOTE_TEMPLATE = {
    "zh": "将 <Quote></Quote> 中的内容作为本次对话的参考:\n<Quote>\n{{quote}}\n</Quote>",
    "en": "Take what is in <Quote></Quote> as reference for this conversation:\n<Quote>\n{{quote}}\n</Quote>",
}
DOCUMENT_TEMPLATE = "File: {name}\n<Content>\n{content}\n</Content>"
SEPARATOR = "\n******\n"
CUT_DOCUMENT = {
    "zh": "[内容过长，已截断：以上为前 {shown} 个字符，共 {total} 个；可用 read_files 读取全文]",
    "en": "[cut: {shown} of {total} characters; read_files has the rest]",
}
CUT_TEXT = {
    "zh": "[内容过长，已截断：以上为前 {shown} 个字符，共 {total} 个]",
    "en": "[cut: {shown} of {total} characters]",
}
DOCUMENTS_REASON, TEXT_REASON = "the documents of this conversation", "a text that goes with every page"
CUT_REASON = "cut to fit the quote's budget of {budget} tokens: {cuts}"
LEFT_OUT_REASON = "left out: the quote's budget of {budget} tokens holds none of it"
# A text may consist of joined documents, so keep its <Content> tags. Neutralise the tags that could end the quote.
TEXT_TAGS = tuple(tag for tag in OUR_TAGS if tag != "Content")


@dataclass(frozen=True, kw_only=True)
class ParsedDocument:
    """A document's text, or the reason that parsing failed.

    `total` is the length of the whole text if `content` is only its beginning.
    """

    name: str
    content: str
    failed: bool = False
    total: int | None = None

    @property
    def length(self) -> int:
        """The number of characters of the whole text."""
        return max(len(self.content), self.total or 0)


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Tokens of a document's block before and after a cut. A quoted text is one block named `quote`."""

    name: str
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, kw_only=True)
class Quote:
    """The text of the quote's system message and its tokens, which never exceed the budget.

    `text` is empty if the budget cannot hold even the marks of the cuts. `reason` goes into the manifest.
    """

    text: str
    tokens_before: int
    tokens_after: int
    cuts: tuple[Cut, ...] = ()
    reason: str = ""

    @cached_property
    def message(self) -> SystemMessage | None:
        """The system message, encoded and counted once for all pages that use this quote."""
        return SystemMessage(id="quote", text=self.text) if self.text else None


QuoteSource: TypeAlias = str | Sequence[ParsedDocument]


def choose_documents(turns: Sequence[Sequence[InputFile]], max_files: int) -> tuple[InputFile, ...]:
    """Select at most `max_files` documents without duplicates, newest turn first (D4). `turns` are oldest first."""
    newest: dict[Source, InputFile] = {}
    for turn in reversed(turns):
        for one in turn:
            if one.kind == "document":
                newest.setdefault(one.file.source, one)
    return tuple(islice(newest.values(), max(0, max_files)))


def join_documents(documents: Sequence[ParsedDocument]) -> str:
    """Return the documents as one text (D5). Names and contents are neutralised so that none can end its block."""
    return SEPARATOR.join(map(_block, documents))


def _block(document: ParsedDocument) -> str:
    return DOCUMENT_TEMPLATE.format(name=neutralise(one_line(document.name)), content=neutralise(document.content))


def quote_message(quote: QuoteSource, *, budget: int, counter: TokenCounter, locale: str = "zh") -> Quote | None:
    """Return the system message with documents or the text of an agent or workflow (D2); None if there is nothing.

    Over the budget, the longest texts are cut first, all to the same length, each with a mark at its end.
    """
    if not (quote.strip() if isinstance(quote, str) else quote):
        return None
    longest = max(map(len, (quote,) if isinstance(quote, str) else [document.content for document in quote]))
    whole, bare = _message(quote, longest, locale), _message(quote, 0, locale)
    tokens, least = counter.count((whole, bare))
    # Scale the token count to the full length: a document's `content` may hold only its beginning.
    documents = () if isinstance(quote, str) else quote
    known_length = sum(len(document.content) for document in documents)
    before = round(tokens * sum(document.length for document in documents) / known_length) if known_length else tokens
    if min(least, tokens) > budget:
        cuts, reason = _cuts(quote, None, locale, counter), LEFT_OUT_REASON.format(budget=budget)
        return Quote(text="", tokens_before=before, tokens_after=0, cuts=cuts, reason=reason)

    def cut_at(limit: int) -> Try:
        text = _message(quote, limit, locale)
        return Try(limit, text, counter.count((text,))[0])

    best = Try(longest, whole, tokens)
    if tokens > budget:
        best = widest(Try(0, bare, least), best, budget, cut_at)
    cuts = _cuts(quote, best.limit, locale, counter)
    reason = TEXT_REASON if isinstance(quote, str) else DOCUMENTS_REASON
    if cuts:
        changes = ", ".join(f"{cut.name} {cut.tokens_before} -> {cut.tokens_after}" for cut in cuts)
        reason = CUT_REASON.format(budget=budget, cuts=changes)
    return Quote(text=best.text, tokens_before=before, tokens_after=best.size, cuts=cuts, reason=reason)


def _message(quote: QuoteSource, limit: int, locale: str) -> str:
    if isinstance(quote, str):
        text = _cut_text(quote, limit, locale)
    else:
        text = join_documents([_cut(one, limit, locale) for one in quote])
    return QUOTE_TEMPLATE[language(locale)].replace("{{quote}}", text)


def _cut_text(text: str, limit: int, locale: str) -> str:
    return neutralise(shorten(text, limit, CUT_TEXT[language(locale)]), TEXT_TAGS)


def _cut(document: ParsedDocument, limit: int, locale: str) -> ParsedDocument:
    content = shorten(document.content, limit, CUT_DOCUMENT[language(locale)], _total(document))
    return replace(document, content=content, total=None)


def _total(document: ParsedDocument) -> str:
    return str(document.length) if document.length > len(document.content) else ""


def _cuts(quote: QuoteSource, limit: int | None, locale: str, counter: TokenCounter) -> tuple[Cut, ...]:
    """Return the cuts that `limit` makes. None cuts all documents completely."""
    if isinstance(quote, str):
        is_touched = limit is None or is_cut(quote, limit)
        names, before, lengths = (["quote"], [neutralise(quote, TEXT_TAGS)], [1.0]) if is_touched else ([], [], [])
        after = ["" if limit is None else _cut_text(quote, limit, locale)] if is_touched else []
    else:
        documents = [one for one in quote if limit is None or is_cut(one.content, limit, _total(one))]
        names, before = [one_line(one.name) for one in documents], [_block(one) for one in documents]
        lengths = [one.length / max(1, len(one.content)) for one in documents]
        after = ["" if limit is None else _block(_cut(one, limit, locale)) for one in documents]
    if not names:
        return ()
    tokens = counter.count((*before, *after))
    # Scale the cost to the full length of the document.
    costs = [round(was * length) for was, length in zip(tokens, lengths, strict=False)]
    pairs = zip(names, costs, tokens[len(names) :], strict=True)
    return tuple(Cut(name=name, tokens_before=was, tokens_after=now) for name, was, now in pairs)
