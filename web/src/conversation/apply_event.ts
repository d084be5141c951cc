/** Pure reducer from messages and a run event to new messages. */

import type { AguiEvent, Progress } from "../api/agui.ts";
import { emptyAnswer, type AssistantMessage, type Message, type ReasoningMessage, type ToolCall } from "./messages.ts";
import { isError, readMessages, textOf } from "./read_messages.ts";

/** `now` is the browser clock in milliseconds, `run` the task of the event. */
interface EventContext {
  readonly now: number;
  readonly run: string;
}

export function applyEvent(messages: readonly Message[], event: AguiEvent, context: EventContext): readonly Message[] {
  switch (event.type) {
    case "TEXT_MESSAGE_START":
      return updateAnswer(messages, event.messageId, context, (answer) => ({ ...answer, isStreaming: true }));
    case "TEXT_MESSAGE_CONTENT":
      return updateAnswer(messages, event.messageId, context, (answer) => ({ ...answer, text: answer.text + event.delta }));
    case "TEXT_MESSAGE_END":
      return updateAnswer(messages, event.messageId, context, (answer) => ({ ...answer, isStreaming: false }));
    case "REASONING_MESSAGE_START":
      return updateReasoning(messages, event.messageId, (reasoning) => reasoning);
    case "REASONING_MESSAGE_CONTENT":
      return updateReasoning(messages, event.messageId, (reasoning) => ({ ...reasoning, text: reasoning.text + event.delta }));
    case "REASONING_MESSAGE_END":
      return updateReasoning(messages, event.messageId, (reasoning) => ({ ...reasoning, isStreaming: false }));
    case "TOOL_CALL_START":
      return startCall(messages, event, context);
    case "TOOL_CALL_ARGS":
      return updateCall(messages, event.toolCallId, (call) => ({ ...call, arguments: call.arguments + event.delta }));
    case "TOOL_CALL_END":
      return updateCall(messages, event.toolCallId, (call) => ({ ...call, state: "running", started: context.now }));
    case "TOOL_CALL_RESULT":
      return endCall(messages, event, context);
    case "ACTIVITY_SNAPSHOT":
      return applyActivity(messages, event);
    case "CUSTOM":
      return applyCustom(messages, event);
    case "MESSAGES_SNAPSHOT":
      return readMessages(event.messages, messages);
    case "RUN_FINISHED":
    case "RUN_ERROR":
      return closeStreams(messages);
    default:
      return messages;
  }
}

type EventOf<Type extends AguiEvent["type"]> = Extract<AguiEvent, { type: Type }>;

function updateAnswer(
  messages: readonly Message[],
  id: string,
  { run }: EventContext,
  change: (answer: AssistantMessage) => AssistantMessage,
): readonly Message[] {
  const place = messages.findLastIndex((message) => message.role === "assistant" && message.id === id);
  if (place < 0) return [...messages, change({ ...emptyAnswer(id), run })];
  return messages.with(place, change(messages[place] as AssistantMessage));
}

function updateReasoning(
  messages: readonly Message[],
  id: string,
  change: (reasoning: ReasoningMessage) => ReasoningMessage,
): readonly Message[] {
  const place = messages.findLastIndex((message) => message.role === "reasoning" && message.id === id);
  if (place < 0) return [...messages, change({ role: "reasoning", id, text: "", isStreaming: true })];
  return messages.with(place, change(messages[place] as ReasoningMessage));
}

function startCall(messages: readonly Message[], event: EventOf<"TOOL_CALL_START">, context: EventContext): readonly Message[] {
  const call: ToolCall = {
    id: event.toolCallId,
    name: event.toolCallName,
    arguments: "",
    state: "writing",
    result: null,
    resultId: null,
    ui: null,
    progress: null,
    started: null,
    ended: null,
  };
  return updateAnswer(messages, event.parentMessageId, context, (answer) => ({
    ...answer,
    // A client that joins late gets the call from its start.
    calls: [...answer.calls.filter((other) => other.id !== call.id), call],
  }));
}

function endCall(messages: readonly Message[], event: EventOf<"TOOL_CALL_RESULT">, context: EventContext): readonly Message[] {
  const result = textOf(event.content);
  return updateCall(messages, event.toolCallId, (call) => ({
    ...call,
    state: isError(result) ? "failed" : "done",
    result,
    resultId: event.messageId,
    ended: context.now,
    started: call.started ?? context.now,
  }));
}

function updateCall(messages: readonly Message[], id: string, change: (call: ToolCall) => ToolCall): readonly Message[] {
  const place = messages.findLastIndex(
    (message) => message.role === "assistant" && message.calls.some((call) => call.id === id),
  );
  const answer = messages[place];
  if (answer?.role !== "assistant") return messages;
  return messages.with(place, {
    ...answer,
    calls: answer.calls.map((call) => (call.id === id ? change(call) : call)),
  });
}

/** Attach progress of a call to the call. Other activities become notes. */
function applyActivity(messages: readonly Message[], event: EventOf<"ACTIVITY_SNAPSHOT">): readonly Message[] {
  if (event.activityType === "recto.progress") {
    const progress = event.content as unknown as Progress;
    const call = callsOf(messages).find((other) => event.messageId.startsWith(`${other.id}-progress`));
    if (call) return updateCall(messages, call.id, (match) => ({ ...match, progress }));
  }
  const note: Message = { role: "note", id: event.messageId, kind: event.activityType, content: event.content };
  const place = messages.findLastIndex((message) => message.id === event.messageId);
  return place < 0 ? [...messages, note] : messages.with(place, note);
}

function applyCustom(messages: readonly Message[], event: EventOf<"CUSTOM">): readonly Message[] {
  const { messageId } = event.value;
  if (event.name === "recto.discarded") return messages.filter((message) => message.id !== messageId);
  if (event.name !== "recto.ui") return messages;
  const { uiSchema } = event.value;
  const call = callsOf(messages).find((other) => other.resultId === messageId);
  if (call) return updateCall(messages, call.id, (match) => ({ ...match, ui: uiSchema }));
  return messages.map((message) =>
    message.role === "assistant" && message.id === messageId ? { ...message, ui: uiSchema } : message,
  );
}

/** End all streams and drop the run's progress. */
function closeStreams(messages: readonly Message[]): readonly Message[] {
  const remaining = messages.filter((message) => !(message.role === "note" && message.kind === "recto.progress"));
  return remaining.map((message) => {
    if (message.role === "reasoning" && message.isStreaming) return { ...message, isStreaming: false };
    if (message.role === "assistant" && message.isStreaming) return { ...message, isStreaming: false };
    return message;
  });
}

function callsOf(messages: readonly Message[]): ToolCall[] {
  return messages.flatMap((message) => (message.role === "assistant" ? message.calls : []));
}
