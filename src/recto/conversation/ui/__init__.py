"""The ui of conversation.

- `attach_ui`: the `uiSchema` that goes with a result or an answer (P14), for history and events alike
- `compile_ui`: `uiSchema` v2.0 from the `ui_hints` of a tool result or an answer (P14)
- `hint_fields`: fields of hints (P14)
- `safe_text`: strings that are safe to show (P14)
- `ui_nodes`: nodes of `uiSchema` (P14), made from hints
- `ui_schema`: the JSON Schema of `uiSchema` v2.0 (P14)
"""
