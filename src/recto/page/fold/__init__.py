"""Folding (R1-R9): old tool results that newer ones stand for become a line, in the page only.

- `failures`: results that report an error
- `agent_tools`: what agents call their tools
- `rules`: the rules, each one value: its tools, how many results stay, how old one may be, how people set it
- `paths`: which file a path means (R4)
- `fold_settings`: the rules that are on, as they are set (R11)
- `observations`: what the rules look at in a conversation
- `folded_result`: what stands for a result that was folded
- `fold`: which of these are not needed any more, and what stands in their place

Folding by cost (X2) goes by the same tools, and folds in steps that save money:

- `cost_settings`: when a result is spent and when a step pays; what a prompt cache costs
- `quotes`: what edits quote of files
- `activity`: when each result was last touched
- `plan_step`: the next step
- `cache_state`: whether the beginning of the page is in the provider's cache
- `fold_by_cost`: what steps have folded, and the next one
"""
