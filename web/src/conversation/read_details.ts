/** What events have no place for: ids of files, how calls and answers ended, and what nobody has told yet. Pure. */

import type { MessageRow } from "../api/agui.ts";
import type { ThreadDetails } from "../api/routes.ts";
import type { AssistantMessage, Message, ToolCall } from "./messages.ts";

/** The message before the last user's: what follows it is the newest turn. */
export function beforeLastTurn(messages: readonly Message[]): string | null {
  const last = messages.findLastIndex((message) => message.role === "user" && message.status === "said");
  const before = messages.slice(0, Math.max(last, 0));
  return before.findLast((message) => message.role === "user" || message.role === "assistant")?.id ?? null;
}

/** What is shown, with what was told of the same messages since. */
export function withDetails(shown: readonly Message[], told: readonly Message[]): readonly Message[] {
  const known = new Map(told.map((message) => [message.id, message]));
  return shown.map((message) => detailed(message, known.get(message.id)));
}

function detailed(shown: Message, told: Message | undefined): Message {
  if (shown.role === "user" && told?.role === "user") {
    return { ...shown, files: told.files, run: told.run, time: told.time };
  }
  if (shown.role === "assistant" && told?.role === "assistant") return answered(shown, told);
  return shown;
}

function answered(shown: AssistantMessage, told: AssistantMessage): AssistantMessage {
  const calls = shown.calls.map((call) => ended(call, told.calls.find((one) => one.id === call.id)));
  return { ...shown, calls, status: told.status, ui: told.ui ?? shown.ui, run: told.run ?? shown.run, time: told.time };
}

function ended(shown: ToolCall, told: ToolCall | undefined): ToolCall {
  if (!told || told.result === null) return shown;
  return { ...shown, state: told.state, result: told.result, resultId: told.resultId, ui: told.ui ?? shown.ui };
}

/** A message is shown as waiting that waits no more: its run began and ended between two looks at the thread. */
export function hasMissedRun(messages: readonly Message[], details: ThreadDetails): boolean {
  if (details.activeRun || details.queued.length) return false;
  return messages.some((message) => message.role === "user" && message.status === "queued");
}

/** What a person said and the server has not: it stays, whatever is read again. */
export function unsaid(known: readonly Message[], rows: readonly MessageRow[]): Message[] {
  const stored = new Set(rows.map((row) => row.id));
  return known.filter(
    (message) =>
      message.role === "user" &&
      (message.status === "sending" || message.status === "unsent") &&
      !stored.has(message.id),
  );
}
