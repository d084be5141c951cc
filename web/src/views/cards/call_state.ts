/** How a call stands: what the events said of it, and whether anybody still works on it. */

import type { CallState, ToolCall } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";

/** `open`: nobody works on it, and nobody is asked. */
export type ShownState = CallState | "open";

export function stateOf(call: ToolCall, thread: OpenThread): ShownState {
  if (call.state === "done" || call.state === "failed") return call.state;
  const waits = [
    ...(thread.details.value?.pendingCalls ?? []).map((pending) => pending.id),
    ...(thread.details.value?.interrupts ?? []).map((interrupt) => interrupt.toolCallId),
  ];
  if (!thread.isRunning.value) return waits.includes(call.id) ? "waiting" : "open";
  return call.state;
}
