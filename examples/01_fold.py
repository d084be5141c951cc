"""Fold a conversation: what newer results stand for leaves the page, never the log."""

import json
from pathlib import Path

from recto import Facts, assemble, decode

conversation = json.loads(Path(__file__).with_name("session.json").read_text(encoding="utf-8"))
page, manifest = assemble(Facts(log=decode(conversation["messages"])))

for part in manifest.parts:
    if part.decision != "kept":
        print(f"{part.source:13} {part.decision:9} {part.rule:4} {part.reason}")
print(f"{manifest.tokens_before:,} tokens before, {manifest.tokens_after:,} after; page {page.digest[:12]}")
