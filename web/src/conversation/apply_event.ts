/** What an event of a run does to the conversation. Pure: the same messages and event give the same messages. */

import type { AguiEvent, Progress } from "../api/agui.ts";
import { emptyAnswer, type AssistantMessage, type Message, type ReasoningMessage, type ToolCall } from "./messages.ts";
import { isError, readMessages, wordsOf } from "./read_messages.ts";

/** `now` is the browser's clock in milliseconds; `run` the task the event is of. */
export interface Moment {
  readonly now: number;
  readonly run: string;
}

export function applyEvent(messages: readonly Message[], event: AguiEvent, moment: Moment): readonly Message[] {
  switch (event.type) {
    case "TEXT_MESSAGE_START":
      return opened(messages, event.messageId, moment);
    case "TEXT_MESSAGE_CONTENT":
      return withAnswer(messages, event.messageId, moment, (answer) => ({ ...answer, text: answer.text + event.delta }));
    case "TEXT_MESSAGE_END":
      return withAnswer(messages, event.messageId, moment, (answer) => ({ ...answer, isStreaming: false }));
    case "REASONING_MESSAGE_START":
      return withThought(messages, event.messageId, (thought) => thought);
    case "REASONING_MESSAGE_CONTENT":
      return withThought(messages, event.messageId, (thought) => ({ ...thought, text: thought.text + event.delta }));
    case "REASONING_MESSAGE_END":
      return withThought(messages, event.messageId, (thought) => ({ ...thought, isStreaming: false }));
    case "TOOL_CALL_START":
      return startCall(messages, event, moment);
    case "TOOL_CALL_ARGS":
      return withCall(messages, event.toolCallId, (call) => ({ ...call, arguments: call.arguments + event.delta }));
    case "TOOL_CALL_END":
      return withCall(messages, event.toolCallId, (call) => ({ ...call, state: "running", started: moment.now }));
    case "TOOL_CALL_RESULT":
      return endCall(messages, event, moment);
    case "ACTIVITY_SNAPSHOT":
      return withActivity(messages, event);
    case "CUSTOM":
      return applyCustom(messages, event);
    case "MESSAGES_SNAPSHOT":
      return readMessages(event.messages, messages);
    case "RUN_FINISHED":
    case "RUN_ERROR":
      return closed(messages);
    default:
      return messages;
  }
}

type EventOf<Type extends AguiEvent["type"]> = Extract<AguiEvent, { type: Type }>;

function opened(messages: readonly Message[], id: string, moment: Moment): readonly Message[] {
  return withAnswer(messages, id, moment, (answer) => ({ ...answer, isStreaming: true }));
}

function withAnswer(
  messages: readonly Message[],
  id: string,
  { run }: Moment,
  change: (answer: AssistantMessage) => AssistantMessage,
): readonly Message[] {
  const place = messages.findLastIndex((message) => message.role === "assistant" && message.id === id);
  if (place < 0) return [...messages, change({ ...emptyAnswer(id), run })];
  return messages.with(place, change(messages[place] as AssistantMessage));
}

function withThought(
  messages: readonly Message[],
  id: string,
  change: (thought: ReasoningMessage) => ReasoningMessage,
): readonly Message[] {
  const place = messages.findLastIndex((message) => message.role === "reasoning" && message.id === id);
  if (place < 0) return [...messages, change({ role: "reasoning", id, text: "", isStreaming: true })];
  return messages.with(place, change(messages[place] as ReasoningMessage));
}

function startCall(messages: readonly Message[], event: EventOf<"TOOL_CALL_START">, moment: Moment): readonly Message[] {
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
  return withAnswer(messages, event.parentMessageId, moment, (answer) => ({
    ...answer,
    // One that is opened again, for who joined in the middle, is told from its beginning.
    calls: [...answer.calls.filter((one) => one.id !== call.id), call],
  }));
}

function endCall(messages: readonly Message[], event: EventOf<"TOOL_CALL_RESULT">, moment: Moment): readonly Message[] {
  const result = wordsOf(event.content);
  return withCall(messages, event.toolCallId, (call) => ({
    ...call,
    state: isError(result) ? "failed" : "done",
    result,
    resultId: event.messageId,
    ended: moment.now,
    started: call.started ?? moment.now,
  }));
}

function withCall(messages: readonly Message[], id: string, change: (call: ToolCall) => ToolCall): readonly Message[] {
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

/** Progress of a call stands at the call; that of the run itself, and what else is told, is a note. */
function withActivity(messages: readonly Message[], event: EventOf<"ACTIVITY_SNAPSHOT">): readonly Message[] {
  if (event.activityType === "recto.progress") {
    const progress = event.content as unknown as Progress;
    const call = callsOf(messages).find((one) => event.messageId.startsWith(`${one.id}-progress`));
    if (call) return withCall(messages, call.id, (found) => ({ ...found, progress }));
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
  const call = callsOf(messages).find((one) => one.resultId === messageId);
  if (call) return withCall(messages, call.id, (found) => ({ ...found, ui: uiSchema }));
  return messages.map((message) =>
    message.role === "assistant" && message.id === messageId ? { ...message, ui: uiSchema } : message,
  );
}

/** The run is over: nothing is written any more, and its progress is of no use. */
function closed(messages: readonly Message[]): readonly Message[] {
  const kept = messages.filter((message) => !(message.role === "note" && message.kind === "recto.progress"));
  return kept.map((message) => {
    if (message.role === "reasoning" && message.isStreaming) return { ...message, isStreaming: false };
    if (message.role === "assistant" && message.isStreaming) return { ...message, isStreaming: false };
    return message;
  });
}

function callsOf(messages: readonly Message[]): ToolCall[] {
  return messages.flatMap((message) => (message.role === "assistant" ? message.calls : []));
}
