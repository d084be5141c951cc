"""The texts a page is written with, each beside what renders it.

- `system_prompt`: the system prompt (S9) within its budget (S1)
- `reminder`: what stands before a user's words, and text that cannot forge it (F1-F3)
- `tools_prompt`: tools for models that have no native calls (P11)
- `quote`: documents in the page (D2)
- `summarise`: asking a model for a summary (R13)
- `suggestion_page`: asking a model what a user could say next (P15)
"""
