"""The text of page.

- `cut`: cutting a text to a number of tokens, with a mark where it was cut
- `tokens`: counting tokens
"""
