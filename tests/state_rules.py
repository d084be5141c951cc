"""The rule for mutable state: a field is changed by its own class, or at least in its own module."""

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import TypeGuard

from tests.layers import Module


def outside_assignments(modules: Sequence[Module]) -> Iterator[str]:
    """Yield assignments to a field of an object other than `self`, unless its annotated class is in the same module."""
    for module in modules:
        classes = {node.name: node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}
        parts = [part for one in (module.tree, *classes.values()) for part in one.body]
        # Check classes member by member, because names of one method do not apply in another.
        for part in (part for part in parts if not isinstance(part, ast.ClassDef)):
            mine = {"self", "cls", *(name for node in ast.walk(part) if (name := typed_name(node, classes)))}
            for node in (node for node in ast.walk(part) if sets_field(node, mine)):
                yield f"{module.where}:{node.lineno}: {ast.unparse(node)} is set. Give its class a method for that."


def sets_field(node: ast.AST, mine: Collection[str]) -> TypeGuard[ast.expr]:
    """Return True if the node sets or deletes a field of an object that is not in `mine`."""
    match node:
        case ast.Attribute(ctx=ast.Load()):
            return False
        case ast.Attribute(value=ast.Name(id=name)):
            return name not in mine
        case ast.Attribute() | ast.Call(func=ast.Name(id="setattr") | ast.Attribute(attr="__setattr__")):
            return True
        case _:
            return False


def typed_name(node: ast.AST, classes: Collection[str]) -> str | None:
    """Return the name that a parameter or an assignment gives to an object of one of these classes."""
    match node:
        case ast.arg(arg=name, annotation=ast.Name(id=kind)) if kind in classes:
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id=kind))) if kind in classes:
            return name
        case _:
            return None
