"""The encoding of files.

- `alphabets`: the encoding of Cyrillic, Arabic, Hebrew, Greek or Thai words, by their commonest letters
- `decode`: bytes as text
- `east_asian`: chinese, Japanese and Korean in older encodings
"""
