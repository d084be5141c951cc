"""Bytes as text, in whatever encoding they are.

- `decode`: the text of bytes, or that they are none
- `east_asian`: Chinese, Japanese and Korean in older encodings
- `alphabets`: Cyrillic, Arabic, Hebrew, Greek and Thai in older encodings
"""
