"""What of a wish for suggestions a model is asked with (P15): never more tokens than it may cost."""

from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.input.run_input import ContextItem
from recto.conversation.input.suggestion_input import SuggestionInput
from recto.conversation.messages import AssistantMessage, Text, ToolOffer, UserMessage, words_of
from recto.page.prompt.suggestion_page import CUT, fit_suggestion
from recto.page.text.tokens import OFFLINE, count_text

TOOL = ToolOffer(name="suggest", description="Suggest", parameters='{"type":"object"}')


def wish(*words: str, context: tuple[ContextItem, ...] = ()) -> SuggestionInput:
    kinds = (UserMessage, AssistantMessage)
    history = [kinds[place % 2](id=f"m{place}", parts=(Text(text=text),)) for place, text in enumerate(words[:-1])]
    asking = UserMessage(id="s", parts=(Text(text=words[-1]),))
    return SuggestionInput(thread="s", run="r", tool=TOOL, messages=(*history, asking), context=context)


def size(suggestion: SuggestionInput) -> int:
    texts = [words_of(one) for one in suggestion.messages] + [
        f"{one.description}\n{one.value}" for one in suggestion.context
    ]
    return sum(count_text(text, OFFLINE) for text in (f"{TOOL.name}\n{TOOL.description}\n{TOOL.parameters}", *texts))


def test_P15_a_wish_that_fits_is_asked_whole():
    suggestion = wish("Hello", "Hi there", "Suggest.", context=(ContextItem(description="page", value="orders"),))
    assert fit_suggestion(suggestion, 1_000, OFFLINE) == suggestion


def test_P15_of_a_long_history_the_newest_is_shown_and_nothing_before_a_gap():
    suggestion = wish("one", "word " * 500, "three", "four", "Suggest.")
    fitting = fit_suggestion(suggestion, 100, OFFLINE)
    assert fitting is not None
    assert [words_of(one) for one in fitting.messages] == ["three", "four", "Suggest."]


def test_P15_a_long_instruction_is_cut_and_says_so():
    fitting = fit_suggestion(wish("Hello", "word " * 100_000), 100, OFFLINE)
    assert fitting is not None
    (only,) = fitting.messages
    assert words_of(only).startswith("word word")
    assert words_of(only).endswith(CUT)


def test_P15_context_that_is_too_long_is_left_out_and_what_fits_stays():
    items = (ContextItem(description="all", value="word " * 500), ContextItem(description="page", value="orders"))
    fitting = fit_suggestion(wish("Hello", "Suggest.", context=items), 100, OFFLINE)
    assert fitting is not None
    assert fitting.context == items[1:]
    assert len(fitting.messages) == 2


def test_P15_a_tool_that_does_not_fit_is_not_asked_for():
    assert fit_suggestion(wish("Suggest."), 5, OFFLINE) is None


@given(
    st.lists(st.text(max_size=200), min_size=1, max_size=8),
    st.lists(st.text(max_size=100), max_size=3),
    st.integers(1, 400),
)
def test_P15_no_wish_costs_more_than_it_may(words: list[str], values: list[str], tokens: int):
    suggestion = wish(*words, context=tuple(ContextItem(description="d", value=value) for value in values))
    fitting = fit_suggestion(suggestion, tokens, OFFLINE)
    assert fitting is None or size(fitting) <= tokens
    assert (
        fitting is None
        or suggestion.messages[len(suggestion.messages) - len(fitting.messages) :][:-1] == fitting.messages[:-1]
    )
