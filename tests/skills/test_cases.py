"""S8: cases are found by an inverted index over what is known of the user."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from recto.page.prompt.system_prompt import Case
from recto.skills.cases import NO_CASES, CaseIndex, ScoredCase, TaggedCase, best_cases, index_cases


def tagged(name: str, *tags: str, rules: Sequence[str] = ()) -> TaggedCase:
    return TaggedCase(case=Case(id=name, name=name, content=f"About {name}."), tags=tags, rule_ids=tuple(rules))


WEAK = tagged("weak", "身弱", "庚", rules=["wealth"])
STRONG = tagged("strong", "身强", "庚", "正官", rules=["career"])
LINKED = tagged("linked", "缺水", rules=["career", "wealth"])
METAL = tagged("metal", "庚")
INDEX = index_cases([WEAK, STRONG, LINKED, METAL])


def find_names(
    index: CaseIndex, values: Sequence[str], rules: Sequence[str] = (), count: int = 2
) -> list[tuple[str, int]]:
    return [(one.case.id, one.score) for one in best_cases(index, values, rules, count)]


def test_S8_a_value_is_a_point_a_link_to_the_scenarios_rule_two_more_and_a_link_alone_finds_nothing():
    assert find_names(INDEX, ["庚"], ["wealth"]) == [("weak", 3), ("strong", 1)]
    assert find_names(INDEX, [], ["career", "wealth"]) == []
    assert len(best_cases(INDEX, ["庚"], ())) == 2


def test_S8_what_was_found_says_by_which_values_and_rules():
    assert best_cases(INDEX, [" 正官 ", "庚", "正官"], ["wealth", "career", "career"], 1) == (
        ScoredCase(case=STRONG.case, score=4, matched=("正官", "庚"), rules=("career",)),
    )


def test_S8_without_cases_nothing_is_found():
    assert best_cases(NO_CASES, ["庚"], ["career"]) == ()
    assert index_cases([]) == NO_CASES


class Watched(Sequence[TaggedCase]):
    """Cases that say how often one of them was looked at."""

    def __init__(self, cases: Sequence[TaggedCase]) -> None:
        self.cases, self.looks = cases, 0

    def __len__(self) -> int:
        return len(self.cases)

    def __getitem__(self, place: int) -> TaggedCase:  # pyright: ignore[reportIncompatibleMethodOverride] - no slices here
        self.looks += 1
        return self.cases[place]

    def __iter__(self) -> Iterator[TaggedCase]:
        raise AssertionError("a pass over all cases")


class Looked(Mapping[str, tuple[int, ...]]):
    """Places by tag that cannot be gone through."""

    def __init__(self, places: Mapping[str, tuple[int, ...]]) -> None:
        self.places, self.looks = places, 0

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, tag: str) -> tuple[int, ...]:
        self.looks += 1
        return self.places[tag]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("a pass over all tags")


def test_S8_of_many_cases_only_those_are_looked_at_that_have_a_value():
    index = index_cases([tagged(f"c{number}", f"tag {number}", rules=["all"]) for number in range(500)])
    cases, tags = Watched(index.cases), Looked(index.by_tag)
    watched = replace(index, cases=cases, by_tag=tags)
    assert find_names(watched, ["tag 7", "tag 400", "none"], ["all"]) == [("c7", 3), ("c400", 3)]
    assert (cases.looks, tags.looks) == (2, 3)


WORDS = st.lists(st.sampled_from(["a", "A ", "b", "c", "d", " ", "ß", "SS"]), max_size=5)
RULES = st.lists(st.sampled_from(["r", "s", "t"]), max_size=3)
CASES = st.lists(st.tuples(WORDS, RULES), max_size=8)


@given(CASES, WORDS, RULES, st.integers(0, 4))
def test_S8_the_index_agrees_with_looking_at_every_case(
    new_cases: Sequence[tuple[list[str], list[str]]], values: list[str], rules: list[str], count: int
):
    cases = [tagged(str(place), *tags, rules=links) for place, (tags, links) in enumerate(new_cases)]
    assert find_names(index_cases(cases), values, rules, count) == naive(cases, values, rules)[:count]


def naive(cases: Sequence[TaggedCase], values: list[str], rules: list[str]) -> list[tuple[str, int]]:
    expected = {value.strip().casefold() for value in values} - {""}
    scores: list[tuple[str, int]] = []
    for one in cases:
        points = len(expected & {tag.strip().casefold() for tag in one.tags})
        bonus = 2 if points and set(rules) & set(one.rule_ids) else 0
        scores.append((one.case.id, points + bonus))
    return sorted([score for score in scores if score[1]], key=lambda score: -score[1])
