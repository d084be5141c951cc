"""X2: folding by cost as an agent's file sets it: its numbers, and what stands for a result."""

from pathlib import Path

import pytest

from recto.page.fold.fold_settings import PLACEHOLDER, PLACEHOLDER_WITH_RECALL, CostSettings
from tests.agents.test_agent_file import agent


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("locale: en", PLACEHOLDER["en"]),
        ("locale: zh", PLACEHOLDER["zh"]),
        ("locale: en\ntools: [recall]", PLACEHOLDER_WITH_RECALL["en"]),
        ("locale: zh\ntools: [recall]", PLACEHOLDER_WITH_RECALL["zh"]),
    ],
)
def test_X2_what_stands_for_a_result_folded_by_cost_is_in_the_agents_language_and_names_recall_where_it_is_offered(
    tmp_path: Path, settings: str, expected: str
):
    assert agent(tmp_path, f"{settings}\nfold: cost").fold.cost == CostSettings(placeholder=expected)
    own = agent(tmp_path, f"{settings}\nfold: {{mode: cost, cost: {{placeholder: gone}}}}").fold.cost
    assert own == CostSettings(placeholder="gone")


def test_X2_every_number_of_folding_by_cost_is_a_setting(tmp_path: Path):
    numbers = {name: value for name, value in vars(CostSettings()).items() if isinstance(value, int | float)}
    changed = {name: value / 2 if isinstance(value, float) else value + 1 for name, value in numbers.items()}
    text = "\n".join(f"    {name}: {value}" for name, value in changed.items())
    agent_found = agent(tmp_path, f"fold:\n  mode: cost\n  cost:\n{text}").fold.cost
    assert {name: value for name, value in vars(agent_found).items() if name in changed} == changed
