"""Pieces of texts that are nearly YAML: what a parser may stumble over."""

SIGNS = ("---", "- ", "\n", "\r", ": ", "&a", "*a", "!!x", "|\n ", "\t", *"{}[]>'\"#?~")
CHARACTERS = ("\u2028", "\x85", "\0", "\x7f", "\ufeff", "\\ud800", "中文", "😀")
SCALARS = ("...", "1e999", "-0", "0x1F", "yes", "null", "2026-01-31", "<<", "%YAML 9.9")
PIECES = (*SIGNS, *CHARACTERS, *SCALARS)
