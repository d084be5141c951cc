"""S7: sop.yaml: steps in order, each with the condition under which it is due, and what is said of each mistake."""

from pathlib import Path

import pytest

from recto.config.yaml_values import read_yaml
from recto.skills.load_skills import read_sop
from recto.skills.skill_file import Needs
from recto.skills.sop import AllOf, AnyOf, Condition, Differs, Equals, Has, Missing, Not, Sop, SopStep
from tests.skills.skill_folders import broken, list_problems, loaded_with

NEEDS = Needs(skill="it", fields=("birth_info", "life_context.career"), has_data=True)
KNOWN_NAMES = "Known: birth_info, life_context.career, skill_data.it, tier, scenario, month, day, thread, locale."
UNDECLARED = f"conditions use only paths in profile_fields. {KNOWN_NAMES}"
EVERYTHING = """\
---
# A procedure.
steps:
  - id: collect
    title: Ask for the birth
    when: {missing: birth_info}
    text: |
      Ask for it.
      Kindly.
  - id: compute
    when:
      any:
        - missing: skill_data.it
        - differs: [birth_info, skill_data.it.birth_info]
    text: Compute.
  - id: ready
    title: Read
    text: Read.
rules:
  - One.
  - Two.
tool_rules: |
  Never twice.
"""


def test_S7_steps_conditions_and_rules_become_a_procedure():
    collect = SopStep(
        id="collect", title="Ask for the birth", text="Ask for it.\nKindly.", when=Missing(path="birth_info")
    )
    changed = Differs(path="birth_info", other="skill_data.it.birth_info")
    due = AnyOf(of=(Missing(path="skill_data.it"), changed))
    compute = SopStep(id="compute", title="compute", text="Compute.", when=due)
    ready = SopStep(id="ready", title="Read", text="Read.")
    expected = Sop(steps=(collect, compute, ready), rules="- One.\n- Two.", tool_rules="Never twice.")
    assert read_sop(EVERYTHING.encode(), NEEDS) == (expected, (), ())


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("{missing: [birth_info, tier]}", AnyOf(of=(Missing(path="birth_info"), Missing(path="tier")))),
        ("{has: scenario}", Has(path="scenario")),
        ("{has: [skill_data.it, tier]}", AllOf(of=(Has(path="skill_data.it"), Has(path="tier")))),
        (
            "{equals: {birth_info.leap: false, life_context.career: [1, a]}}",
            AllOf(of=(Equals(path="birth_info.leap", value=False), Equals(path="life_context.career", value=[1, "a"]))),
        ),
        ("{not: {has: tier}}", Not(of=Has(path="tier"))),
        ("{all: [{has: tier}]}", Has(path="tier")),
        (
            "{has: tier, any: [{missing: birth_info, has: scenario}, {not: {has: tier}}]}",
            AllOf(
                of=(
                    Has(path="tier"),
                    AnyOf(of=(AllOf(of=(Missing(path="birth_info"), Has(path="scenario"))), Not(of=Has(path="tier")))),
                )
            ),
        ),
    ],
)
def test_S7_a_condition_is_what_its_table_says(when: str, expected: Condition):
    read = read_sop(f"steps:\n- {{id: a, text: Do., when: {when}}}\n- {{id: b, text: Do.}}".encode(), NEEDS)
    assert (read.sop.steps[0].when, read.faults, read.warnings) == (expected, (), ())


@pytest.mark.parametrize(
    ("when", "line", "text"),
    [
        ("{}", 4, "steps.0.when is {}; it is a table of conditions. Known: missing, has, equals, differs, all, any, "),
        ("\n    mising: tier", 5, "there is no condition mising in steps.0.when; did you mean missing? Known: all, "),
        ("\n    missing:\n    - tier\n    - x", 7, f'steps.0.when.missing.1 is "x"; {UNDECLARED}'),
        ("\n    has: life_context", 5, f'steps.0.when.has is "life_context"; {UNDECLARED}'),
        ("\n    equals: tier", 5, 'steps.0.when.equals is "tier"; it is a table of paths, each with what it equals.'),
        ("\n    equals:\n      x: 1", 6, f'steps.0.when.equals.x is "x"; {UNDECLARED}'),
        ("\n    equals: {tier: }", 5, "steps.0.when.equals.tier has no value. Add one or remove the line."),
        ("\n    differs: [tier]", 5, 'steps.0.when.differs is ["tier"]; it is a list of two paths.'),
        ("\n    any:\n    - has: tier\n    - tier", 7, 'steps.0.when.any.1 is "tier"; it is a table of conditions. '),
        ("\n    not: [{has: tier}]", 5, 'steps.0.when.not is [{"has":"tier"}]; it is a table of conditions. Known'),
    ],
)
def test_S7_a_mistake_in_a_condition_is_told_with_its_line(when: str, line: int, text: str):
    read = read_sop(f"steps:\n- id: a\n  text: Do.\n  when: {when}\n- id: b\n  text: Do.\n".encode(), NEEDS)
    assert [(fault.line, fault.text[: len(text)]) for fault in read.faults] == [(line, text)]
    assert read.faults[0].text.endswith(".")


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("", 1, "it has no steps. Write them as a list: `- id: ...`, `text: ...`, and `when: ...` unless it is "),
        ("steps: a: b", 1, "it is not YAML: mapping values are not allowed here; "),
        ("steps:\n- {id: a, text: b}\nrule: x", 3, "there is no setting rule; did you mean rules? Known: rules, "),
        ("steps:\n- text: Do.", 2, "steps.0 has no id. Add one."),
        ("steps:\n- id: a", 2, "steps.0 has no text. Add one."),
        ("steps:\n- {id: a, text: b}\ntool_rules: [a, 3]", 3, 'tool_rules is ["a",3]; it is text, or a list of texts.'),
        ("steps:\n- {id: a, text: b, when: {has: tier}}\n- id: a\n  text: c", 3, 'steps.1.id is "a"; another step '),
    ],
)
def test_S7_a_mistake_in_a_procedure_is_told_with_its_line(text: str, line: int, expected: str):
    faults = read_sop(text.encode(), NEEDS).faults
    assert [(fault.line, fault.text[: len(expected)]) for fault in faults] == [(line, expected)]


def test_S7_a_procedure_that_is_no_text_or_too_long_is_told():
    faults = (*read_sop(b"steps:\n\n\xff", NEEDS).faults, *read_sop(b"#" * 262_145, NEEDS).faults)
    assert [(fault.line, fault.text) for fault in faults] == [
        (3, "byte 8 is not UTF-8 (invalid start byte). Save the file as UTF-8."),
        (1, "it has more than 262144 bytes. Shorten it."),
    ]


@pytest.mark.full
def test_S7_a_line_is_found_without_counting_those_before_it_again():
    # Counting the lines of each value from the first one takes 3.5 s, and the tier's CPU limit fails it.
    values = read_yaml("\n" * 2_000_000 + f"a: [{'1, ' * 4_000}]\n", first_line=1)
    assert values is not None


def test_S7_steps_without_an_id_do_not_have_the_same_one():
    faults = read_sop(b"steps:\n- text: a\n- text: b", NEEDS).faults
    assert [fault.text for fault in faults] == ["steps.0 has no id. Add one.", "steps.1 has no id. Add one."]


def test_S7_rules_that_say_nothing_are_left_out_and_lines_may_end_as_they_like():
    read = read_sop(b"steps: [{id: a, text: b}]\nrules: ['', ' x ']\ntool_rules: []", NEEDS)
    assert (read.sop.rules, read.sop.tool_rules) == ("- x", "")
    text = "\ufeffsteps:\r\n- id: a\r\n  text: Do.\r\n"
    assert read_sop(text.encode(), NEEDS) == (Sop(steps=(SopStep(id="a", title="a", text="Do."),)), (), ())


def test_S7_a_step_that_is_never_due_and_nothing_left_to_do_are_warnings():
    later = read_sop(b"steps:\n- {id: a, text: b}\n- {id: c, text: d}\n- {id: e, text: f, when: {has: tier}}", NEEDS)
    never = "it is never due, because a before it always is. Give that one a `when`, or remove this one."
    assert [(one.line, one.text) for one in later.warnings] == [(3, f"steps.1: {never}"), (4, f"steps.2: {never}")]
    nothing = read_sop(b"rules: x\nsteps:\n- {id: a, text: b, when: {has: tier}}", NEEDS)
    text = "every step has a `when`, so nothing may be due at the end. Add a last step without one."
    assert [(warning.line, warning.text) for warning in nothing.warnings] == [(3, text)]


def test_S7_own_data_must_be_declared_to_be_asked_for():
    text = b"steps:\n- {id: a, text: b, when: {missing: skill_data.it}}\n- {id: b, text: c}"
    (fault,) = read_sop(text, Needs(skill="it")).faults
    assert fault.text.endswith(". Known: tier, scenario, month, day, thread, locale.")


def test_S7_a_broken_procedure_breaks_the_skill_and_a_warning_does_not(tmp_path: Path):
    loaded_skills = loaded_with(
        tmp_path, "", {"sop.yaml": "rules: x\nsteps:\n- id: a\n  text: b\n  when: {has: birth_info}"}
    )
    assert [line.split("; ")[0] for line in broken(tmp_path, loaded_skills)] == [
        'it/sop.yaml:5: steps.0.when.has is "birth_info"'
    ]
    loaded_skills = loaded_with(tmp_path, "", {"sop.yaml": "steps:\n- {id: a, text: b, when: {has: tier}}"})
    assert list(loaded_skills.skills) == ["it"]
    assert [line.split(",")[0] for line in list_problems(tmp_path, loaded_skills.warnings)] == [
        "it/sop.yaml:2: every step has a `when`"
    ]
