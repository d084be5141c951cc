"""What the page has to know of a wire format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

WireName: TypeAlias = Literal["openai", "anthropic"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a page goes: the format it speaks, the model it is for, and whether that model sees pictures."""

    wire: WireName = "openai"
    model: str = ""
    sees_images: bool = True
