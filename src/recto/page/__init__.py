"""What one model call is sent: facts in, page and manifest out. No I/O, no clock, no randomness, no async.

In the order a page is made:

- `facts`: all that shapes a page
- `assemble`: the one function every page goes through
- `preamble`: what stands before the conversation
- `prompt`: the texts a page is written with: system prompt, tools, quote, reminder, request for a summary
- `steps`: what happens to the conversation on its way, a file for each step
- `fold`: old results that newer ones stand for become a line
- `earlier_results`: what was folded, summarised or left out, by its number counted from the newest
- `draft`: the conversation after a step, where each message came from, what the step noted
- `request`: requests that others wrote, changed where they are repaired and folded (X3)
- `body`: the bytes of a request
- `wire`: provider formats, each both ways
- `text`: counting tokens and cutting texts
- `manifest`: of every part of a page what it costs and why it is in, folded or out
- `named_rules`: the rules of all this, each with a name and a line for people
- `shown_parts`: the parts as people are shown them, with how each begins
- `prefix`: whether a page begins with the one before it, and if not, why
- `difference`: two pages side by side: what changed by part, where the bytes part ways, what that costs
- `savings`: what folding saved in the call of a page, and what a break of its prefix cost
- `exports`: a call as a curl command, or as an entry of a HAR file
"""
