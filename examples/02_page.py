"""Set a page with a skill, files, history and folding, and print its manifest."""

import json
from datetime import UTC, datetime
from pathlib import Path

from recto import Facts, Target, assemble, decode
from recto.conversation.log import SkillChanged
from recto.conversation.messages import File, Key, Text, ToolOffer, UserMessage
from recto.page.facts import Turn
from recto.page.prompt.system_prompt import Case, Datum, Prompt

past = decode(json.loads(Path(__file__).with_name("session.json").read_text(encoding="utf-8"))["messages"][1:])
design = File(kind="document", source=Key(key="k1"), name="Design.pdf")
question = UserMessage(id="u2", parts=(Text(text="Does the dark theme match the design?"), design))
expert = Prompt(
    title="Front end - Engineer",
    identity="You know this shop's front end by heart.",
    sop="1. Read the design. 2. Compare. 3. Say what differs.",
    cases=(Case(id="c1", name="A colour that was off by one", content="The token was right, the theme was not."),),
    data=(Datum(title="Project", text="shop, TypeScript, two themes"),),
)
facts = Facts(
    log=(*past, question, SkillChanged(id="s1", skill="front-end")),
    target=Target(wire="openai", model="gpt"),
    prompt=expert,
    budget=8_000,
    history=30,
    turn=Turn(response_id="r2", admitted_at=datetime(2026, 2, 1, 9, tzinfo=UTC)),
    urls={"k1": "https://files.example/design?signature=1"},
    tools=(ToolOffer(name="filesystem-read", description="Read files.", parameters='{"type":"object"}'),),
    options={"stream": True},
    locale="en",
)
page, manifest = assemble(facts)

for part, span in zip(manifest.parts, manifest.spans, strict=True):
    place = f"{span[0]:>5}-{span[1]:<5}" if span else " " * 11
    print(f"{place} {part.kind:9} {part.decision:9} {part.rule or '':4} {part.source:16} {part.reason}")
print(f"{manifest.tokens.tokens:,} tokens (estimated: {manifest.tokens.estimated}), {len(page.body):,} bytes")
