"""The prompt of page.

- `quote`: documents in the page
- `reminder`: the reminder before a user's words
- `summarise`: asking a model for a summary (R13)
- `system_prompt`: the system prompt (S9) within its budget (S1)
- `tools_prompt`: tools for models that have no native calls (P11)
"""
