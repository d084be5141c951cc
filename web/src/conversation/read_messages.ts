/** The messages of a thread as the server tells them, read into what the page shows. */

import type { Content, FilePart, FileRow, MessageRow } from "../api/agui.ts";
import type { AssistantMessage, AttachedFile, FileKind, Message, ToolCall, UserMessage } from "./messages.ts";

const KINDS: readonly FileKind[] = ["document", "image", "audio", "video"];

/** Results stand at their calls. `known` is what is shown already: a snapshot has no details, so those stay. */
export function readMessages(rows: readonly MessageRow[], known: readonly Message[] = []): Message[] {
  const results = new Map(rows.filter((row) => row.role === "tool").map((row) => [row.toolCallId, row]));
  const before = new Map(known.map((message) => [message.id, message]));
  return rows
    .map((row) => readMessage(row, results, before.get(row.id)))
    .filter((message) => message !== null);
}

function readMessage(
  row: MessageRow,
  results: ReadonlyMap<string | undefined, MessageRow>,
  known: Message | undefined,
): Message | null {
  switch (row.role) {
    case "user":
      return readUser(row, known?.role === "user" ? known : undefined);
    case "assistant":
      return readAnswer(row, results, known?.role === "assistant" ? known : undefined);
    case "reasoning":
      return { role: "reasoning", id: row.id, text: wordsOf(row.content), isStreaming: false };
    case "activity":
      return readNote(row);
    default:
      return null;
  }
}

export function readUser(row: MessageRow, known?: UserMessage): UserMessage {
  const files = row.files?.map(fileOfRow) ?? filesOf(row.content);
  return {
    role: "user",
    id: row.id,
    text: wordsOf(row.content),
    files: row.files || !known ? files : files.map((file, place) => ({ ...file, id: known.files[place]?.id ?? null })),
    status: row.status === "queued" ? "queued" : "said",
    run: row.run ?? known?.run ?? null,
    time: row.timestamp ?? known?.time ?? null,
  };
}

function readAnswer(
  row: MessageRow,
  results: ReadonlyMap<string | undefined, MessageRow>,
  known?: AssistantMessage,
): AssistantMessage {
  const calls = (row.toolCalls ?? []).map((call): ToolCall => {
    const result = results.get(call.id);
    const shown = known?.calls.find((one) => one.id === call.id);
    return {
      id: call.id,
      name: call.function.name,
      arguments: call.function.arguments,
      state: result ? (isFailure(result) ? "failed" : "done") : (shown?.state ?? "running"),
      result: result ? wordsOf(result.content) : (shown?.result ?? null),
      resultId: result?.id ?? shown?.resultId ?? null,
      ui: result?.uiSchema ?? shown?.ui ?? null,
      progress: shown?.progress ?? null,
      started: shown?.started ?? null,
      ended: shown?.ended ?? null,
    };
  });
  return {
    role: "assistant",
    id: row.id,
    text: wordsOf(row.content),
    calls,
    ui: row.uiSchema ?? known?.ui ?? null,
    isStreaming: false,
    status: row.status ?? known?.status ?? null,
    run: row.run ?? known?.run ?? null,
    time: row.timestamp ?? known?.time ?? null,
  };
}

function readNote(row: MessageRow): Message | null {
  const { content, activityType } = row;
  if (!activityType || typeof content !== "object" || Array.isArray(content)) return null;
  return { role: "note", id: row.id, kind: activityType, content: content as Readonly<Record<string, unknown>> };
}

function isFailure(row: MessageRow): boolean {
  return row.error !== undefined || isError(wordsOf(row.content));
}

/** Results that failed begin so, by every tool. */
export function isError(result: string): boolean {
  return /^\s*Error:/.test(result);
}

export function wordsOf(content: MessageRow["content"]): string {
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

export function fileOfRow(row: FileRow): AttachedFile {
  return { id: row.id, name: row.name ?? "", kind: kindOf(row.type), url: row.url };
}

function kindOf(type: string): FileKind {
  return KINDS.find((kind) => kind === type) ?? (type === "binary" ? "image" : "document");
}
