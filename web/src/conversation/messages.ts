/** Messages of a conversation as immutable values. Each call contains its result. */

import type { Progress } from "../api/agui.ts";
import type { UiSchema } from "../api/ui_schema.ts";

export type FileKind = "document" | "image" | "audio" | "video";

export interface AttachedFile {
  /** Id that the model uses, or null until the server reports it. */
  readonly id: string | null;
  readonly name: string;
  readonly kind: FileKind;
  readonly url: string;
}

export interface UserMessage {
  readonly role: "user";
  readonly id: string;
  readonly text: string;
  readonly files: readonly AttachedFile[];
  /** `sending` until the server accepts it, `queued` behind another run, `unsent` after an error. */
  readonly status: "sent" | "sending" | "queued" | "unsent";
  /** Requested skill, for a retry. */
  readonly skill?: string;
  readonly run: string | null;
  readonly time: string | null;
}

export type CallState = "writing" | "running" | "done" | "failed" | "waiting";

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly state: CallState;
  readonly result: string | null;
  readonly resultId: string | null;
  readonly ui: UiSchema | null;
  readonly progress: Progress | null;
  /** Browser clock in milliseconds, or null if this page did not see it. */
  readonly started: number | null;
  readonly ended: number | null;
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly id: string;
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly ui: UiSchema | null;
  readonly isStreaming: boolean;
  /** `interrupted`, `length`, `refused` or `filtered` if the answer is incomplete. */
  readonly status: string | null;
  readonly run: string | null;
  readonly time: string | null;
}

export interface ReasoningMessage {
  readonly role: "reasoning";
  readonly id: string;
  readonly text: string;
  readonly isStreaming: boolean;
}

/** Activity beside the conversation, such as unusable files. */
export interface NoteMessage {
  readonly role: "note";
  readonly id: string;
  readonly kind: string;
  readonly content: Readonly<Record<string, unknown>>;
}

export type Message = UserMessage | AssistantMessage | ReasoningMessage | NoteMessage;

/** A user message and everything up to the next one. */
export interface Turn {
  readonly key: string;
  readonly user: UserMessage | null;
  readonly answers: readonly Exclude<Message, UserMessage>[];
}

/** Group messages into turns. Unchanged turns keep their identity, so they do not render again. */
export function turnsOf(messages: readonly Message[]): Turn[] {
  const turns: { key: string; user: UserMessage | null; answers: Exclude<Message, UserMessage>[] }[] = [];
  for (const message of messages) {
    if (message.role === "user") turns.push({ key: message.id, user: message, answers: [] });
    else {
      if (!turns.length) turns.push({ key: message.id, user: null, answers: [] });
      turns.at(-1)?.answers.push(message);
    }
  }
  return turns.map(reuseTurn);
}

const turnCache = new WeakMap<Message, Turn>();

function reuseTurn(turn: Turn): Turn {
  const first = turn.user ?? (turn.answers[0] as Message);
  const before = turnCache.get(first);
  const isEqual =
    before?.answers.length === turn.answers.length && before.answers.every((one, place) => one === turn.answers[place]);
  if (before && isEqual) return before;
  turnCache.set(first, turn);
  return turn;
}

/** Return the last run that wrote in a turn, else the run of its user message. */
export function runOf(turn: Turn): string | null {
  const runs = turn.answers.filter((message) => message.role === "assistant").map((message) => message.run);
  return runs.findLast((run) => run !== null) ?? turn.user?.run ?? null;
}

/** Return the text of an answer. With a card, the model writes JSON that may contain text. */
export function displayText(message: AssistantMessage): string {
  const isJson = /^\s*\{/.test(message.text);
  if (message.isStreaming) return isJson ? "" : message.text;
  if (!message.ui || !isJson) return message.text;
  try {
    const { content } = JSON.parse(message.text) as { content?: unknown };
    return typeof content === "string" ? content : "";
  } catch {
    return message.text;
  }
}

/** Return all text of a turn, for copying and for screen readers. */
export function answerText(turn: Turn): string {
  return turn.answers
    .map((message) => (message.role === "assistant" ? displayText(message) : ""))
    .filter(Boolean)
    .join("\n\n");
}

export function emptyAnswer(id: string): AssistantMessage {
  return { role: "assistant", id, text: "", calls: [], ui: null, isStreaming: true, status: null, run: null, time: null };
}
