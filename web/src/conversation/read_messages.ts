/** Parser from API messages to page messages. */

import type { Content, FilePart, MessageRow } from "../api/agui.ts";
import type { ThreadDetails } from "../api/routes.ts";
import type { AssistantMessage, AttachedFile, FileKind, Message, ToolCall, UserMessage } from "./messages.ts";

const KINDS: readonly FileKind[] = ["document", "image", "audio", "video"];

/** Attach results to their calls. `previous` supplies the details that snapshots lack. */
export function readMessages(rows: readonly MessageRow[], previous: readonly Message[] = []): Message[] {
  const results = new Map(rows.filter((row) => row.role === "tool").map((row) => [row.toolCallId, row]));
  const before = new Map(previous.map((message) => [message.id, message]));
  return rows
    .map((row) => readMessage(row, results, before.get(row.id)))
    .filter((message) => message !== null);
}

function readMessage(
  row: MessageRow,
  results: ReadonlyMap<string | undefined, MessageRow>,
  previous: Message | undefined,
): Message | null {
  switch (row.role) {
    case "user":
      return readUser(row, previous?.role === "user" ? previous : undefined);
    case "assistant":
      return readAnswer(row, results, previous?.role === "assistant" ? previous : undefined);
    case "reasoning":
      return { role: "reasoning", id: row.id, text: textOf(row.content), isStreaming: false };
    case "activity":
      return readNote(row);
    default:
      return null;
  }
}

export function readUser(row: MessageRow, previous?: UserMessage): UserMessage {
  const files = row.files?.map((file) => ({ id: file.id, name: file.name ?? "", kind: kindOf(file.type), url: file.url })) ?? filesOf(row.content);
  return {
    role: "user",
    id: row.id,
    text: textOf(row.content),
    files: row.files || !previous ? files : files.map((file, place) => ({ ...file, id: previous.files[place]?.id ?? null })),
    status: row.status === "queued" ? "queued" : "sent",
    run: row.run ?? previous?.run ?? null,
    time: row.timestamp ?? previous?.time ?? null,
  };
}

function readAnswer(
  row: MessageRow,
  results: ReadonlyMap<string | undefined, MessageRow>,
  previous?: AssistantMessage,
): AssistantMessage {
  const calls = (row.toolCalls ?? []).map((call): ToolCall => {
    const result = results.get(call.id);
    const previousCall = previous?.calls.find((one) => one.id === call.id);
    return {
      id: call.id,
      name: call.function.name,
      arguments: call.function.arguments,
      state: result ? (result.error !== undefined || isError(textOf(result.content)) ? "failed" : "done") : (previousCall?.state ?? "running"),
      result: result ? textOf(result.content) : (previousCall?.result ?? null),
      resultId: result?.id ?? previousCall?.resultId ?? null,
      ui: result?.uiSchema ?? previousCall?.ui ?? null,
      progress: previousCall?.progress ?? null,
      started: previousCall?.started ?? null,
      ended: previousCall?.ended ?? null,
    };
  });
  return {
    role: "assistant",
    id: row.id,
    text: textOf(row.content),
    calls,
    ui: row.uiSchema ?? previous?.ui ?? null,
    isStreaming: false,
    status: row.status ?? previous?.status ?? null,
    run: row.run ?? previous?.run ?? null,
    time: row.timestamp ?? previous?.time ?? null,
  };
}

function readNote(row: MessageRow): Message | null {
  const { content, activityType } = row;
  if (!activityType || typeof content !== "object" || Array.isArray(content)) return null;
  return { role: "note", id: row.id, kind: activityType, content: content as Readonly<Record<string, unknown>> };
}

/** Failed results of all tools start this way. */
export function isError(result: string): boolean {
  return /^\s*Error:/.test(result);
}

export function textOf(content: MessageRow["content"]): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return (content as Exclude<Content, string>)
    .map((part) => (part.type === "text" ? part.text : ""))
    .filter(Boolean)
    .join("\n");
}

function filesOf(content: MessageRow["content"]): AttachedFile[] {
  if (!Array.isArray(content)) return [];
  const parts = (content as Exclude<Content, string>).filter((part): part is FilePart => part.type !== "text");
  return parts.map((part) => ({
    id: null,
    name: part.metadata?.filename ?? "",
    kind: kindOf(part.type),
    url: part.source?.value ?? part.url ?? "",
  }));
}

function kindOf(type: string): FileKind {
  return KINDS.find((kind) => kind === type) ?? (type === "binary" ? "image" : "document");
}

/** Return the id of the message before the newest turn. */
export function lastTurnCursor(messages: readonly Message[]): string | null {
  const last = messages.findLastIndex((message) => message.role === "user" && message.status === "sent");
  const before = messages.slice(0, Math.max(last, 0));
  return before.findLast((message) => message.role === "user" || message.role === "assistant")?.id ?? null;
}

/** Merge details from the server into the messages on the page. */
export function mergeDetails(messages: readonly Message[], details: readonly Message[]): readonly Message[] {
  const byId = new Map(details.map((message) => [message.id, message]));
  return messages.map((message) => mergeMessage(message, byId.get(message.id)));
}

function mergeMessage(message: Message, details: Message | undefined): Message {
  if (message.role === "user" && details?.role === "user") {
    return { ...message, files: details.files, run: details.run, time: details.time };
  }
  if (message.role !== "assistant" || details?.role !== "assistant") return message;
  const calls = message.calls.map((call) => mergeCall(call, details.calls.find((other) => other.id === call.id)));
  return { ...message, calls, status: details.status, ui: details.ui ?? message.ui, run: details.run ?? message.run, time: details.time };
}

function mergeCall(call: ToolCall, details: ToolCall | undefined): ToolCall {
  if (!details || details.result === null) return call;
  return { ...call, state: details.state, result: details.result, resultId: details.resultId, ui: details.ui ?? call.ui };
}

/** Return true if a message is still queued here although its run has started and ended. */
export function hasMissedRun(messages: readonly Message[], details: ThreadDetails): boolean {
  if (details.activeRun || details.queued.length) return false;
  return messages.some((message) => message.role === "user" && message.status === "queued");
}

/** Return the messages that the server does not have, so that a reload keeps them. */
export function unsentMessages(messages: readonly Message[], rows: readonly MessageRow[]): Message[] {
  const storedIds = new Set(rows.map((row) => row.id));
  return messages.filter(
    (message) =>
      message.role === "user" &&
      (message.status === "sending" || message.status === "unsent") &&
      !storedIds.has(message.id),
  );
}
