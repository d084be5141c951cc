"""Functions of Python code, and the changes of one token that the demo model tries."""

import pytest

from recto.models.demo.code_changes import changes_of, functions_in, reached_from

SHOP = '''"""A shop: total(things) is - in words - what they cost."""


class Cart:
    """A cart. It may hold < 10 things."""

    def total(
        self,
        start=0,
    ):
        """
Written to the left: 1 + 1.
        """
        return start + sum(price(one) for one in self.things)  # not start - sum

    @property
    def things(self):
        return self.held[1:]


def price(thing):
    return thing["price"] + 1
'''


def changed_lines(code: str) -> list[str]:
    """The function with each change of its one line."""
    files = {"shop.py": f"def f(a, b):\n    {code}\n"}
    changes = changes_of(functions_in(files), files)
    return [files["shop.py"].replace(change.old, change.new).split("\n")[1].strip() for change in changes]


@pytest.mark.parametrize(
    ("broken", "repaired"),
    [
        ("return a-b", "return a+b"),
        ("return a + b", "return a - b"),
        ("a += b", "a -= b"),
        ("return a < b", "return a <= b"),
        ("return a != b", "return a == b"),
        ("return list(range(a))", "return list(range(a + 1))"),
        ("for i in range(len(a) - 1):", "for i in range(len(a)):"),
        ("return a[b]", "return a[b - 1]"),
        ("return a and b", "return a or b"),
        ("return max(a, b)", "return min(a, b)"),
        ("if a in b:", "if not a in b:"),
        ("return a // b", "return a / b"),
    ],
)
def test_R15_a_change_of_one_token_repairs_a_line(broken: str, repaired: str):
    assert repaired in changed_lines(broken)


@pytest.mark.parametrize("code", ['return "a + b < 1 and 0"', "pass  # a + b is not 0", "'''0\n1 + 1'''"])
def test_R15_strings_and_comments_are_left_as_they_are(code: str):
    assert all(line.startswith("return not") for line in changed_lines(code))


def test_R15_who_is_called_comes_after_who_calls_and_whole_classes_last():
    functions = functions_in({"shop.py": SHOP})
    assert [one.name for one in reached_from(["Cart", "total"], functions)] == ["total", "price", "things", "Cart"]


def test_R15_a_change_and_its_way_back_are_found_once_in_the_file():
    text = "def f(a):\n    a = a + 1\n    a = a - 1\n    return a\n\n\ndef g(a):\n    a = a - 1\n    return a\n"
    files = {"shop.py": text}
    for change in changes_of(functions_in(files), files):
        assert text.count(change.old) == 1
        changed = text.replace(change.old, change.new)
        assert changed.count(change.new) == 1
        assert changed.replace(change.undone.old, change.undone.new) == text
