"""Tool names of known agents for reading, running commands, searching and editing. Folding finds results by them.

A conversation of an unknown agent uses the names of all known agents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import cast

from recto.page.fold.rules import FoldRule


@dataclass(frozen=True, kw_only=True)
class AgentTools:
    """Names of an agent's tools and of their arguments.

    `path_args` are the arguments with a path. `quote_args` are the arguments of edits, at any depth, with the text to
    replace.
    """

    reads: tuple[str, ...] = ()
    path_args: tuple[str, ...] = ()
    terminal: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    quote_args: tuple[str, ...] = ()


# Recto's own tools.
CODER = AgentTools(
    reads=("filesystem-read",),
    path_args=("filePath",),
    terminal=("terminal-execute",),
    search=("ace-text_search",),
    edits=("filesystem-edit", "filesystem-create"),
    quote_args=("searchContent",),
)
PI = AgentTools(
    reads=("read",),
    path_args=("path",),
    terminal=("bash",),
    search=("grep", "find"),
    edits=("edit", "write"),
    quote_args=("oldText",),
)
CLAUDE_CODE = AgentTools(
    reads=("Read",),
    path_args=("file_path",),
    terminal=("Bash",),
    search=("Grep", "Glob"),
    edits=("Edit", "MultiEdit", "Write"),
    quote_args=("old_string",),
)
CODEX = AgentTools(
    terminal=("shell", "shell_command", "exec_command", "local_shell", "container.exec"), edits=("apply_patch",)
)
OPENCODE = AgentTools(
    reads=("read",),
    path_args=("filePath",),
    terminal=("bash",),
    search=("grep", "glob", "list"),
    edits=("edit", "multiedit", "write", "patch", "apply_patch"),
    quote_args=("oldString",),
)


NO_TOOLS = AgentTools()


def known_tools(tools: AgentTools = NO_TOOLS) -> AgentTools:
    """Return `tools` if there are any, else the tools of all known agents."""
    if tools != NO_TOOLS:
        return tools
    tool_sets = [vars(tools) for tools in (CODER, PI, CLAUDE_CODE, CODEX, OPENCODE)]
    names = [field.name for field in fields(AgentTools)]
    return AgentTools(
        **{name: tuple(dict.fromkeys([tool for one in tool_sets for tool in one[name]])) for name in names}
    )


def rule_for(rule: FoldRule, tools: AgentTools) -> FoldRule:
    """Return a rule with the agent's names of its tools, or unchanged if the agent has no such tools."""
    names = cast("Mapping[str, tuple[str, ...]]", vars(tools))
    if not names.get(rule.name):
        return rule
    path_args = names["path_args"] if rule.path_args else ()
    return replace(rule, tools=names[rule.name], path_args=path_args or rule.path_args)
