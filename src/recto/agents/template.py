"""Files of a new agent: `AGENT.md` with every setting and its default, and `tools.py` with one tool."""

from __future__ import annotations

from collections.abc import Mapping

from recto.page.wire.formats import SPEAKERS

AGENT_FILE = """\
---
# All settings are optional. Commented lines show the default, or an example where the default is none.
description: What this agent is for, in one line.
# name: {name}                 # the folder's name, or nothing
# starters: ['What is 12 * 7?']   # up to 6 things to say in an empty thread; default: none

# The model
# model: openai:NAME           # default: the server's. Also {others}, demo
# window: 128000               # tokens it can take; default: the server's
# vision: true                 # whether it sees pictures; default: the server's for compatible ones, else true
# temperature: 0.7             # default: the model's own; so for the next three
# max_tokens: 4096
# reasoning_effort: medium     # minimal, low, medium or high
# tool_choice: auto            # auto, none, required or the name of a tool
# output: {{type: object}}       # a JSON Schema the answer has to follow; default: none
# options: {{}}                  # more fields of the request, as the provider names them

# Tools
# tools: [current_time, calculator]   # of those built in; the ones in tools.py always belong
# confirm: []                  # names of tools that a person has to agree to, each time
# mcp: {{files: {{command: [python, server.py]}}}}   # servers of tools; docs/external-tools.md has it all
# openapi: {{shop: {{file: shop.yaml}}}}     # services with an OpenAPI file beside this one
# workspace: .                 # the folder its tools work in; default: the server's, else one for each thread
# mode: ask                    # what a person agrees to there: ask, edits or full; default: the server's
# tool_calling: auto           # native, prompt (in words) or auto; default: as the server and its model have it
# call_form: fenced            # or tags: how calls are written in words

# Files and knowledge
# file_input: false            # true: users may attach documents and images. Or a table; docs/agents.md has it
# quote: We open at nine.      # a text that goes with every page, as a reference; default: none
# datasets: []                 # ids of knowledge bases it brings along

# Words
# locale: en                   # or zh: headings and reminders the model sees
# timezone: Asia/Shanghai      # whose days and hours count where a request names none; default: the server's
# tone: Warm and brief.        # default: none, no such section; so for rules
# rules: Calculate with the calculator, never in your head.
# voices: {{warm: Warm and patient.}}   # tones a request may ask for by voice_mode; default: none
# voice: warm                  # the one without; where voices has no such name, its first
# titles: words                # a thread is named by its first words, or by a model
# client_system: false         # whether a client's system messages speak as the system prompt
# client_view: roll_back       # what an AG-UI client no longer shows is rolled back; or ignore

# How much the model sees
# history: all                 # or a number of messages before the current turn
# budget: 8000                 # tokens of the system prompt; default: no limit
# phases: {{select: {{history: 5, budget: 2000}}, execute: {{history: 10, budget: 8000}}}}   # of agents with skills/
# directory_tokens: 1200       # of use_skill, with its directory of skills
# activation: model            # or triggers: a user's words take up a skill too; default: as the model needs it
# cases: 2                     # worked examples an expert is shown at most
# fold: eager                  # or cost, off, or a table; docs/agents.md has it
# compact: {{at: 0.8, least: 1000, keep: 0.3, last: 0.5, again: 0.1}}
# summary: {{tokens: 100000, summary_tokens: 4000, characters_per_message: 20000}}

# What a run may use; the server's [limits] are the defaults
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
# tiers: {{}}                    # limits of users of another tier than free, such as {{pro: {{steps: 100}}}}
---

You are {name}, a helpful assistant. Use the tools you have where they help, and say what you did.
"""

TOOLS_FILE = '''\
"""Tools of the agent {name}: every typed function marked with @tool. What it raises as ToolError, the model is told."""

from recto import ToolError, tool


@tool(safe_to_repeat=True)
def count_words(text: str) -> int:
    """Count the words of a text."""
    if not text.strip():
        raise ToolError("The text is empty. Give the text whose words are to be counted.")
    return len(text.split())
'''


def new_files(name: str) -> Mapping[str, str]:
    """Return the files of a new agent's folder by name."""
    _, *others = [f"{provider}:NAME" for provider in SPEAKERS]
    agent = AGENT_FILE.format(name=name, others=", ".join(others))
    return {"AGENT.md": agent, "tools.py": TOOLS_FILE.format(name=name)}
