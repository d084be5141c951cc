/** AG-UI 1.0 events and messages, limited to the fields that the page reads. */

import type { UiSchema } from "./ui_schema.ts";

export interface Interrupt {
  readonly id: string;
  readonly toolCallId: string;
  readonly message: string;
  readonly expiresAt?: string;
}

interface Outcome {
  readonly type: "success" | "cancelled" | "interrupt";
  readonly pendingToolCallIds?: readonly string[];
  readonly interrupts?: readonly Interrupt[];
}

export interface Progress {
  readonly label: string;
  readonly status: "running" | "ended";
  readonly done: number;
  readonly unit?: string;
  readonly total?: number;
  readonly text?: string;
}

export type AguiEvent =
  | { readonly type: "RUN_STARTED"; readonly threadId: string; readonly runId: string }
  | { readonly type: "RUN_FINISHED"; readonly outcome: Outcome; readonly result?: { readonly finish?: string } }
  | { readonly type: "RUN_ERROR"; readonly message: string; readonly code?: string }
  | { readonly type: "TEXT_MESSAGE_START"; readonly messageId: string }
  | { readonly type: "TEXT_MESSAGE_CONTENT"; readonly messageId: string; readonly delta: string }
  | { readonly type: "TEXT_MESSAGE_END"; readonly messageId: string }
  | { readonly type: "REASONING_MESSAGE_START"; readonly messageId: string }
  | { readonly type: "REASONING_MESSAGE_CONTENT"; readonly messageId: string; readonly delta: string }
  | { readonly type: "REASONING_MESSAGE_END"; readonly messageId: string }
  | {
      readonly type: "TOOL_CALL_START";
      readonly toolCallId: string;
      readonly toolCallName: string;
      readonly parentMessageId: string;
    }
  | { readonly type: "TOOL_CALL_ARGS"; readonly toolCallId: string; readonly delta: string }
  | { readonly type: "TOOL_CALL_END"; readonly toolCallId: string }
  | { readonly type: "TOOL_CALL_RESULT"; readonly messageId: string; readonly toolCallId: string; readonly content: Content }
  | {
      readonly type: "ACTIVITY_SNAPSHOT";
      readonly messageId: string;
      readonly activityType: string;
      readonly content: Readonly<Record<string, unknown>>;
    }
  | { readonly type: "STEP_STARTED" | "STEP_FINISHED"; readonly stepName: string }
  | { readonly type: "CUSTOM"; readonly name: "recto.ui"; readonly value: { messageId: string; uiSchema: UiSchema } }
  | { readonly type: "CUSTOM"; readonly name: "recto.discarded"; readonly value: { messageId: string } }
  | { readonly type: "MESSAGES_SNAPSHOT"; readonly messages: readonly MessageRow[] };

interface TextPart {
  readonly type: "text";
  readonly text: string;
}

export interface FilePart {
  readonly type: "document" | "image" | "audio" | "video" | "binary";
  readonly source?: { readonly type: "url" | "data"; readonly value: string; readonly mimeType?: string };
  readonly url?: string;
  readonly mimeType?: string;
  readonly metadata?: { readonly filename?: string };
}

export type Content = string | readonly (TextPart | FilePart)[];

export interface FileRow {
  readonly id: string | null;
  readonly name: string | null;
  readonly type: string;
  readonly mimeType: string | null;
  readonly url: string;
}

export interface CallRow {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message of `GET /threads/{id}/messages?details=1` or of a snapshot. Snapshots lack the details. */
export interface MessageRow {
  readonly id: string;
  readonly role: "user" | "assistant" | "tool" | "reasoning" | "activity" | "system" | "developer";
  readonly content?: Content | Readonly<Record<string, unknown>>;
  readonly toolCalls?: readonly CallRow[];
  readonly toolCallId?: string;
  readonly error?: string;
  readonly activityType?: string;
  readonly status?: string;
  readonly timestamp?: string | null;
  readonly run?: string | null;
  readonly uiSchema?: UiSchema | null;
  readonly files?: readonly FileRow[];
}
