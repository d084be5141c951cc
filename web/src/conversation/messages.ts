/** What a conversation is to the page: messages in order, with each call's result at the call. Values, never edited. */

import type { Progress } from "../api/agui.ts";
import type { UiSchema } from "../api/ui_schema.ts";

export type FileKind = "document" | "image" | "audio" | "video";

export interface AttachedFile {
  /** As the model knows it; null while nobody has told. */
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
  /** `sending` until the server has it, `queued` while another run is at work, `unsent` where it was refused. */
  readonly status: "said" | "sending" | "queued" | "unsent";
  /** What was asked for with it, kept until the server has it. */
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
  /** Milliseconds of this browser's clock; null where nobody was looking. */
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
  /** `interrupted`, `length`, `refused` or `filtered` of one that is not whole. */
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

/** What is told to people beside the conversation, such as files that could not be used. */
export interface NoteMessage {
  readonly role: "note";
  readonly id: string;
  readonly kind: string;
  readonly content: Readonly<Record<string, unknown>>;
}

export type Message = UserMessage | AssistantMessage | ReasoningMessage | NoteMessage;

/** A user's message and what follows it up to the next. */
export interface Turn {
  readonly key: string;
  readonly user: UserMessage | null;
  readonly answers: readonly Exclude<Message, UserMessage>[];
}

/** A turn in which nothing changed is the same value as before, so that it need not be drawn again. */
export function turnsOf(messages: readonly Message[]): Turn[] {
  const turns: { key: string; user: UserMessage | null; answers: Exclude<Message, UserMessage>[] }[] = [];
  for (const message of messages) {
    if (message.role === "user") turns.push({ key: message.id, user: message, answers: [] });
    else {
      if (!turns.length) turns.push({ key: message.id, user: null, answers: [] });
      turns.at(-1)?.answers.push(message);
    }
  }
  return turns.map(knownTurn);
}

const known = new WeakMap<Message, Turn>();

function knownTurn(turn: Turn): Turn {
  const first = turn.user ?? (turn.answers[0] as Message);
  const before = known.get(first);
  const isSame =
    before?.answers.length === turn.answers.length && before.answers.every((one, place) => one === turn.answers[place]);
  if (before && isSame) return before;
  known.set(first, turn);
  return turn;
}

/** The run whose calls can be looked at for a turn: the last that wrote anything in it. */
export function runOf(turn: Turn): string | null {
  const written = turn.answers.filter((message) => message.role === "assistant").map((message) => message.run);
  return written.findLast((run) => run !== null) ?? turn.user?.run ?? null;
}

/** The words of an answer. One with a card is JSON as the model wrote it: its words are in there, if anywhere. */
export function shownWords(message: AssistantMessage): string {
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

/** All that was answered in a turn, to be copied or read aloud. */
export function answerText(turn: Turn): string {
  return turn.answers
    .map((message) => (message.role === "assistant" ? shownWords(message) : ""))
    .filter(Boolean)
    .join("\n\n");
}

export function emptyAnswer(id: string): AssistantMessage {
  return { role: "assistant", id, text: "", calls: [], ui: null, isStreaming: true, status: null, run: null, time: null };
}
