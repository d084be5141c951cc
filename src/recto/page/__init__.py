"""The pure heart: log and facts in, page and manifest out. No I/O, no clock, no randomness, no async."""

from recto.page.assemble import assemble
from recto.page.compact import CompactSettings, is_full, place_to_cut
from recto.page.facts import Facts, Turn
from recto.page.fit import Target, fit
from recto.page.fold import Folded, fold
from recto.page.folding import AgeRule, FoldSettings, ReadRule
from recto.page.formats import decode, encode
from recto.page.input_files import FileMaps, InputFile, arguments_for, file_kind, replace_ids_with_urls
from recto.page.log import (
    Compacted,
    Entry,
    FoldStep,
    Interrupted,
    Marker,
    ReplyEnded,
    RolledBack,
    SkillChanged,
    ToolStarted,
    Undone,
    View,
    fork,
    view,
)
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
from recto.page.next_step import CallModel, Compact, Finished, Run, RunTools, Step, WaitForClient, next_step
from recto.page.paths import Project
from recto.page.prefix import Break, prefix_break
from recto.page.prompt import Case, Datum, Prompt, SystemPrompt, system_prompt
from recto.page.quote import ParsedDocument, Quote, choose_documents, join_documents, quote_message
from recto.page.remind import maps_of
from recto.page.reminder import ContextItem, Dataset, neutralise, reminder, with_reminder
from recto.page.repair import repair
from recto.page.setting import Page, Segment, ToolOffer
from recto.page.summarise import SummarySettings, summary_pieces, summary_request
from recto.page.tokens import Calibration, OfflineCounter, TokenCount, TokenCounter
from recto.page.tools_prompt import Parsed, PromptCall, build_tools_prompt, parse_tool_calls, tool_result_text
from recto.page.ui_schema import compile_ui
from recto.page.window import window

__all__ = [
    "ActivityMessage",
    "AgeRule",
    "AssistantMessage",
    "Break",
    "Calibration",
    "CallModel",
    "Case",
    "Compact",
    "CompactSettings",
    "Compacted",
    "ContextItem",
    "Data",
    "Dataset",
    "Datum",
    "DeveloperMessage",
    "Entry",
    "Facts",
    "File",
    "FileMaps",
    "Finished",
    "FoldSettings",
    "FoldStep",
    "Folded",
    "InputFile",
    "Interrupted",
    "Key",
    "Manifest",
    "Marker",
    "Message",
    "OfflineCounter",
    "Opaque",
    "Page",
    "Parsed",
    "ParsedDocument",
    "Part",
    "Project",
    "Prompt",
    "PromptCall",
    "ProviderFile",
    "Quote",
    "ReadRule",
    "ReasoningMessage",
    "Recall",
    "Receipt",
    "ReplyEnded",
    "RolledBack",
    "Run",
    "RunTools",
    "Segment",
    "SkillChanged",
    "Step",
    "SummarySettings",
    "SystemMessage",
    "SystemPrompt",
    "Target",
    "Text",
    "TokenCount",
    "TokenCounter",
    "ToolCall",
    "ToolMessage",
    "ToolOffer",
    "ToolStarted",
    "Turn",
    "Undone",
    "Url",
    "UserMessage",
    "View",
    "WaitForClient",
    "arguments_for",
    "assemble",
    "build_tools_prompt",
    "choose_documents",
    "compile_ui",
    "decode",
    "encode",
    "file_kind",
    "fit",
    "fold",
    "fork",
    "is_full",
    "join_documents",
    "maps_of",
    "neutralise",
    "next_step",
    "parse_tool_calls",
    "place_to_cut",
    "prefix_break",
    "quote_message",
    "reminder",
    "repair",
    "replace_ids_with_urls",
    "summary_pieces",
    "summary_request",
    "system_prompt",
    "tool_result_text",
    "view",
    "window",
    "with_reminder",
]
