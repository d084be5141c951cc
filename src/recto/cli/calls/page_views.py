"""Reports on the next page of a thread and on past calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import quote

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from recto.cli.calls import call_report
from recto.cli.translation import _, code_name, translations
from recto.conversation.json import Object, as_list, as_object, objects
from recto.errors import RequestRefused

BLANK = Text()
# Fraction of a currency unit in which `price` is counted.
PRICE_PARTS = 1_000_000_000
# Largest page size of the API, and number of calls to list.
MOST_CALLS, CALLS_LISTED = 500, 10
# Sends an API request: path and optional body. Raises RequestRefused.
SendRequest: TypeAlias = Callable[[str, Object | None], Awaitable[Object]]


def context_view(row: Object) -> RenderableType:
    """Render the next page of a thread: composition, context window, folded parts and savings."""
    page = call_report.read_page_report(row)
    # Omit the last note if there is nothing to answer yet, which it says.
    notes = [str(note) for note in as_list(row.get("notes", ()), "notes")]
    texts = translations("notes")
    return Group(
        Text(_("The next page: {agent} with {model}").format(agent=row["agent"], model=row["model"]), style="bold"),
        Text(_size(page)),
        *_lines(
            (texts.get(note, note) for note in (notes[:-1] if row.get("next") == "finished" else notes)), style="yellow"
        ),
        *_page_lines(row, page),
        *([BLANK, call_report.smaller_view(page)] if page.manifest.tokens_saved else []),
    )


def call_view(row: Object, title: str, calls: Table | None = None, *, every: bool = False) -> RenderableType:
    """Render a past call: its page with every part, and the difference from the previous call.

    The row is what `recto explain --json` prints. `title` has placeholders for `n`, `calls` and `run`. `every` disables
    grouping of unchanged parts.
    """
    page = call_report.read_page_report(row)
    match row:
        case {"before": {"run": str(run), "n": number}, "difference": {**difference}}:
            since = _("Since call {n}") if run == row["run"] else _("Since call {n} of run {run}")
            comparison = call_report.changes(difference, since.format(n=number, run=run[-8:]))
        case _:
            text = _("This is the first call for this purpose in the thread: there is nothing to compare it with.")
            comparison = Text(text)
    return Group(
        Text(title.format(n=row["n"], calls=row["calls"], run=row["run"])),
        *_lines(_first_lines(row, page)),
        *([BLANK, calls] if calls else []),
        *_page_lines(row, page),
        BLANK,
        call_report.parts_table(list(call_report.part_lines(page, every=every))),
        BLANK,
        call_report.left_out(page.manifest),
        *_lines(call_report.rule_lines(page.manifest, every=every)),
        BLANK,
        comparison,
    )


def calls_table(rows: Sequence[tuple[int, Object]], current: int) -> Table:
    """Render a table of calls with a mark at the displayed one."""
    table = call_report.new_table(
        call_report.word_column(),
        call_report.number_column(_("Call")),
        call_report.word_column(_("Purpose")),
        call_report.text_column(_("Model")),
        call_report.number_column(_("Tokens")),
        call_report.word_column(_("Finish")),
    )
    for number, row in rows:
        tokens, purpose = row.get("tokens"), str(row["purpose"])
        token_count = f"{tokens:,}" if isinstance(tokens, int) else ""
        finish = str(row.get("finish") or ("failed" if row.get("error") else ""))
        mark = ">" if number == current else ""
        table.add_row(mark, str(number), code_name(purpose), str(row["model"]), token_count, code_name(finish))
    return table


def _page_lines(row: Object, page: call_report.PageReport) -> Iterator[RenderableType]:
    yield BLANK
    yield call_report.composition_view(page.manifest)
    yield BLANK
    yield from _lines(call_report.room_lines(row))
    yield from _lines(call_report.saved_lines(row, page.manifest))


def _first_lines(row: Object, page: call_report.PageReport) -> Iterator[str]:
    skill = _(", skill {skill}").format(skill=page.manifest.skill) if page.manifest.skill else ""
    text = _("Purpose {purpose}, model {model}, agent {agent}{skill}, {started}")
    yield text.format(
        purpose=code_name(str(row["purpose"])),
        model=row["model"],
        agent=row["agent"],
        skill=skill,
        started=row["started"],
    )
    yield _size(page) + (_("; digest verified") if row.get("verified") else "")
    # Describe the provider's usage
    counts = as_object(row.get("usage") or {}, "usage")
    texts = {
        "inputTokens": _("{count:,} in"),
        "cachedInputTokens": _("{count:,} of these from its cache"),
        "outputTokens": _("{count:,} out"),
    }
    if usage := _(", ").join(text.format(count=counts[name]) for name, text in texts.items() if name in counts):
        yield _("The provider counted {usage}.").format(usage=usage)
    match row:
        case {"price": int(price), "prices": {"currency": str(currency)}}:
            yield _("The price was {price} {currency}.").format(
                price=call_report.money(price / PRICE_PARTS), currency=currency
            )
        case {"error": str(error)}:
            yield _("The call failed: {error}").format(error=error)
        case _:
            pass


def _size(page: call_report.PageReport) -> str:
    return _("{tokens:,} tokens in {bytes:,} bytes").format(tokens=page.manifest.tokens.tokens, bytes=page.size)


async def report_context(request: SendRequest, thread: str, agent: str | None) -> RenderableType:
    """Report on the next page of a thread; a new thread has the page of its agent."""
    props = {"forwardedProps": {"agent": agent}} if agent else {}
    return context_view(_with_manifest(await request(f"/threads/{thread}/preview", props)))


async def report_call(request: SendRequest, thread: str, number: int) -> RenderableType:
    """Report on a call and its difference from the previous call. Number 1 is the newest call."""
    try:
        answer = await request(f"/threads/{thread}/calls?limit={MOST_CALLS}", None)
    except RequestRefused as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        answer = {"calls": ()}
    # The API returns the newest call first.
    calls = [row for _path, row in objects(answer.get("calls"), "calls")]
    if not calls:
        return Text(_("There are no model calls in this thread yet. Send a message first."))
    if not 1 <= number <= len(calls):
        text = _("There is no call {n}: this thread has {calls}, and 1 is the newest.")
        return Text(text.format(n=number, calls=len(calls)))
    row = await _fetch_call(request, calls, number - 1)
    first = max(0, min(number - CALLS_LISTED // 2, len(calls) - CALLS_LISTED))
    rows = [(place + 1, calls[place]) for place in range(first, min(first + CALLS_LISTED, len(calls)))]
    table = calls_table(rows, number) if len(calls) > 1 else None
    return call_view(row, _("Call {n} of {calls}, counted from the newest; run {run}"), table)


async def _fetch_call(request: SendRequest, calls: Sequence[Object], place: int) -> Object:
    """Return a call as in `recto explain --json`, with call numbers counted from the newest."""
    run, n, purpose = (calls[place][name] for name in ("run", "n", "purpose"))
    call, run_row = await request(f"/runs/{run}/calls/{n}", None), await request(f"/runs/{run}", None)
    row = {**_with_manifest(call), "run": run, "agent": run_row["agent"], "n": place + 1, "calls": len(calls)}
    before = next((at for at in range(place + 1, len(calls)) if calls[at]["purpose"] == purpose), None)
    if before is None:
        return row
    path = f"/runs/{calls[before]['run']}/calls/{calls[before]['n']}/diff/{n}?run={quote(str(run))}"
    return {**row, "before": {"run": run, "n": before + 1}, "difference": await request(path, None)}


def _with_manifest(row: Object) -> Object:
    """Merge the manifest into an API answer, as the reports expect."""
    return {**row, **as_object(row.get("manifest"), "manifest")}


def _lines(lines: Iterator[str] | Sequence[str], style: str = "") -> Iterator[Text]:
    return (Text(line, style=style) for line in lines)
