"""Texts of files as tools show and change them. No disk is looked at.

- `encodings`: which encoding bytes are in, or what they are if no text
- `line_range`: some lines of a text of any size, numbered
- `symbols`: classes and functions of a source text, and their lines
- `symbol_process`: symbols found by a process of its own
- `loose_lines`: lines that are those searched for, but for blanks and indentation
- `replacement`: search and replace, exact first, then with other blanks
- `nearest_text`: what in a text comes nearest to what was looked for
- `line_diff`: a unified diff of what was replaced
"""
