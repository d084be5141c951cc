"""Tools of the agent plain."""

from recto import ToolError, tool


@tool(safe_to_repeat=True)
def stock(item: str) -> int:
    """How many of an item are in stock."""
    shelf = {"milk": 3, "bread": 0}
    if item not in shelf:
        raise ToolError(f"There is no item {item!r}. Known: {', '.join(shelf)}.")
    return shelf[item]
