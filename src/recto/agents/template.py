"""Files of a new agent: `AGENT.md` with every setting and its default, and `tools.py` with one tool."""

from __future__ import annotations

from collections.abc import Mapping

from recto.page.wire.formats import SPEAKERS

AGENT_FILE = """\
---
# All settings are optional. Commented lines show the default, or an example where the default is none.
description: What this agent is for, in one line.
# name: {name}                 # must be the folder's name
# starters: ['What is 12 * 7?']   # up to 6 suggested first messages; default: none

# The model
# model: openai:NAME           # default: the server's. Also {others}, demo
# window: 128000               # tokens of its context window; default: the server's
# vision: true                 # send it pictures; default: the server's for compatible ones, else true
# temperature: 0.7             # default: the model's own; so for the next three
# max_tokens: 4096
# reasoning_effort: medium     # minimal, low, medium or high
# tool_choice: auto            # auto, none, required or the name of a tool
# output: {{type: object}}       # a JSON Schema of the answer; default: none
# options: {{}}                  # more fields of the request, as the provider names them

# Tools
# tools: [current_time, calculator]   # built-in tools; those in tools.py are always available
# confirm: []                  # tools whose calls need approval
# mcp: {{files: {{command: [python, server.py]}}}}   # MCP servers; see docs/external-tools.md
# openapi: {{shop: {{file: shop.yaml}}}}     # services with an OpenAPI file in this folder
# workspace: .                 # the folder its tools work in; default: the server's, else one per thread
# mode: ask                    # actions that need approval: ask, edits or full; default: the server's
# tool_calling: auto           # native, prompt (as text) or auto; default: the server's or the model's
# call_form: fenced            # or tags: the form of calls as text

# Files and knowledge
# file_input: false            # true: users may attach documents and images. Or a table; see docs/agents.md
# quote: We open at nine.      # a reference text in every page; default: none
# datasets: []                 # ids of its knowledge bases

# Language
# locale: en                   # or zh: headings and reminders the model sees
# timezone: Asia/Shanghai      # for requests that name none; default: the server's
# tone: Warm and brief.        # a section of the prompt; default: none; the same for rules
# rules: Calculate with the calculator, never in your head.
# voices: {{warm: Warm and patient.}}   # tones that a request may select with voice_mode; default: none
# voice: warm                  # the default voice; if voices lacks it, the first one
# titles: words                # thread titles: the first words, or model
# client_system: false         # true: a client's system messages extend the system prompt
# client_view: roll_back       # roll back messages that an AG-UI client no longer shows; or ignore

# How much the model sees
# history: all                 # or a number of messages before the current turn
# budget: 8000                 # tokens of the system prompt; default: no limit
# phases: {{select: {{history: 5, budget: 2000}}, execute: {{history: 10, budget: 8000}}}}   # of agents with skills/
# directory_tokens: 1200       # tokens of use_skill with its directory of skills
# activation: model            # or triggers: a user's words activate a skill too; default: as the model needs it
# cases: 2                     # the most worked examples in an expert's prompt
# fold: eager                  # or cost, off, or a table; see docs/agents.md
# compact: {{at: 0.8, least: 1000, keep: 0.3, last: 0.5, again: 0.1}}
# summary: {{tokens: 100000, summary_tokens: 4000, characters_per_message: 20000}}

# Limits of a run; default: the server's [limits]
# limits:
#   steps: 50
#   calls: 128
#   reply_characters: 1000000
#   seconds: 1800
#   tool_seconds: 120
#   tool_characters: 50000
#   failures: 4
#   bad_arguments: 3
#   unusable_replies: 2
#   claims: 20
#   compactions: 3
#   client_seconds: 86400
#   confirm_seconds: 86400
# tiers: {{}}                    # limits of users in other tiers than free, such as {{pro: {{steps: 100}}}}
---

You are {name}, a helpful assistant. Use the tools you have where they help, and say what you did.
"""

TOOLS_FILE = '''\
"""Tools of the agent {name}: every typed function marked with @tool. The model sees the text of a ToolError."""

from recto import ToolError, tool


@tool(safe_to_repeat=True)
def count_words(text: str) -> int:
    """Count the words of a text."""
    if not text.strip():
        raise ToolError("The text is empty. Pass the text to count.")
    return len(text.split())
'''


def new_files(name: str) -> Mapping[str, str]:
    """Return the files of a new agent's folder by name."""
    _, *others = [f"{provider}:NAME" for provider in SPEAKERS]
    agent = AGENT_FILE.format(name=name, others=", ".join(others))
    return {"AGENT.md": agent, "tools.py": TOOLS_FILE.format(name=name)}
