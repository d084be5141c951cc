"""The sizes of texts: counting tokens, and cutting what has too many.

- `tokens`: counting, and calibration by what the provider reported
- `cut`: where to cut, and the mark where it was cut
"""
