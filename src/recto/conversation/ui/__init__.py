"""How messages can be shown (P14): the `uiSchema` that is made of the hints in results and answers.

- `ui_schema`: what a `uiSchema` may hold, as a JSON Schema
- `safe_text`: strings that are safe to show
- `hint_fields`: the fields of hints, each taken only as what it should be
- `ui_nodes`: the nodes of a `uiSchema`, made from hints
- `compile_ui`: hints found, looked through and compiled, or said in words
"""
