"""The built-in demo model: no key, no network, the same reply to the same page.

- `demo_page`: the page as the demo model reads it, and what it replies
- `code_changes`: Python functions, and the changes of one token that may repair them
- `demo_coder`: a small bug fix, call by call
- `demo_model`: the model itself: which of its tricks the words ask for
"""
