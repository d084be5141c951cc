"""The pure heart: log and facts in, page and manifest out. No I/O, no clock, no randomness, no async."""

from recto.page.assemble import Facts, assemble
from recto.page.fit import Target, fit
from recto.page.fold import Folded, fold
from recto.page.folding import AgeRule, FoldSettings, ReadRule
from recto.page.formats import decode, encode
from recto.page.manifest import Manifest, Part, Recall, Receipt
from recto.page.messages import (
    ActivityMessage,
    AssistantMessage,
    Data,
    DeveloperMessage,
    File,
    Key,
    Message,
    Opaque,
    ProviderFile,
    ReasoningMessage,
    SystemMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
)
from recto.page.paths import Project
from recto.page.repair import repair
from recto.page.setting import Page, Segment, ToolOffer
from recto.page.tokens import Calibration, OfflineCounter, TokenCount, TokenCounter

__all__ = [
    "ActivityMessage",
    "AgeRule",
    "AssistantMessage",
    "Calibration",
    "Data",
    "DeveloperMessage",
    "Facts",
    "File",
    "FoldSettings",
    "Folded",
    "Key",
    "Manifest",
    "Message",
    "OfflineCounter",
    "Opaque",
    "Page",
    "Part",
    "Project",
    "ProviderFile",
    "ReadRule",
    "ReasoningMessage",
    "Recall",
    "Receipt",
    "Segment",
    "SystemMessage",
    "Target",
    "Text",
    "TokenCount",
    "TokenCounter",
    "ToolCall",
    "ToolMessage",
    "ToolOffer",
    "Url",
    "UserMessage",
    "assemble",
    "decode",
    "encode",
    "fit",
    "fold",
    "repair",
]
