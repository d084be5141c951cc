"""The pure heart: log and facts in, page and manifest out. No I/O, no clock, no randomness, no async.

- `assemble`: the one function every page goes through
- `body`: the galley
- `draft`: A conversation on its way to a page
- `facts`: all that shapes a page
- `fold`: ...
- `manifest`: the manifest
- `preamble`: what stands before the conversation
- `prefix`: the prefix rule (DESIGN "Prompt prefix")
- `prompt`: ...
- `steps`: ...
- `text`: ...
- `wire`: provider and client formats, each both ways
"""
