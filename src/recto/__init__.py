"""Recto sets the page a model is shown from a log that is never edited, and says of every part why it is there."""

from recto.page import Facts, FoldSettings, Manifest, Page, Target, assemble, decode, encode, fold, repair

__all__ = ["Facts", "FoldSettings", "Manifest", "Page", "Target", "assemble", "decode", "encode", "fold", "repair"]
