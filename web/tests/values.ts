/** Complete messages for tests, with optional changes. */

import type { AssistantMessage, ToolCall, UserMessage } from "../src/conversation/messages.ts";

export function user(id: string, change: Partial<UserMessage> = {}): UserMessage {
  return { role: "user", id, text: `question ${id}`, files: [], status: "sent", run: null, time: null, ...change };
}

export function answer(id: string, change: Partial<AssistantMessage> = {}): AssistantMessage {
  return {
    role: "assistant",
    id,
    text: `answer ${id}`,
    calls: [],
    ui: null,
    isStreaming: false,
    status: null,
    run: null,
    time: null,
    ...change,
  };
}

export function call(id: string, change: Partial<ToolCall> = {}): ToolCall {
  return {
    id,
    name: "weather",
    arguments: "{}",
    state: "running",
    result: null,
    resultId: null,
    ui: null,
    progress: null,
    started: null,
    ended: null,
    ...change,
  };
}
