/** Effect of each run event on the messages. */

import { describe, expect, test } from "vitest";

import type { AguiEvent } from "../src/api/agui.ts";
import { applyEvent } from "../src/conversation/apply_event.ts";
import type { AssistantMessage, Message } from "../src/conversation/messages.ts";
import { answer, call, user } from "./values.ts";

const MOMENT = { now: 1000, run: "run-1" };

function after(messages: readonly Message[], ...events: AguiEvent[]): readonly Message[] {
  return events.reduce((now, event) => applyEvent(now, event, MOMENT), messages);
}

const CARD = { version: "2.0", locale: "en", status: "info", theme: "default", root: { type: "stack", children: [] } } as const;

describe("text", () => {
  test("start, content and end events stream an answer", () => {
    const start: AguiEvent = { type: "TEXT_MESSAGE_START", messageId: "a" };
    const open = after([user("u")], start, { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "Hel" });
    expect(open[1]).toMatchObject({ role: "assistant", text: "Hel", isStreaming: true, run: "run-1" });
    const done = after(open, { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "lo" }, { type: "TEXT_MESSAGE_END", messageId: "a" });
    expect(done[1]).toMatchObject({ text: "Hello", isStreaming: false });
    expect(done[0]).toBe(open[0]);
  });

  test("a second start continues the answer", () => {
    const again = after([answer("a", { text: "Half" })], { type: "TEXT_MESSAGE_START", messageId: "a" }, { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: " more" });
    expect(again).toHaveLength(1);
    expect(again[0]).toMatchObject({ text: "Half more", isStreaming: true });
  });

  test("reasoning is a separate message", () => {
    const reasoning = after(
      [],
      { type: "REASONING_MESSAGE_START", messageId: "r" },
      { type: "REASONING_MESSAGE_CONTENT", messageId: "r", delta: "Hm" },
      { type: "REASONING_MESSAGE_CONTENT", messageId: "r", delta: "m" },
    );
    expect(reasoning).toEqual([{ role: "reasoning", id: "r", text: "Hmm", isStreaming: true }]);
    expect(after(reasoning, { type: "REASONING_MESSAGE_END", messageId: "r" })[0]).toMatchObject({ isStreaming: false });
  });
});

describe("calls", () => {
  const start: AguiEvent = { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "weather", parentMessageId: "a" };

  function callOf(messages: readonly Message[]) {
    return (messages.findLast((message) => message.role === "assistant") as AssistantMessage).calls[0];
  }

  test("a call is written, runs and gets its result", () => {
    const pending = after([], start, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: '{"a"' }, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: ":1}" });
    expect(callOf(pending)).toMatchObject({ name: "weather", arguments: '{"a":1}', state: "writing" });
    const running = after(pending, { type: "TOOL_CALL_END", toolCallId: "c" });
    expect(callOf(running)).toMatchObject({ state: "running", started: 1000 });
    const done = applyEvent(running, { type: "TOOL_CALL_RESULT", messageId: "t", toolCallId: "c", content: "22" }, { now: 1500, run: "run-1" });
    expect(callOf(done)).toMatchObject({ state: "done", result: "22", resultId: "t", started: 1000, ended: 1500 });
  });

  test("a result that starts with Error: marks the call as failed", () => {
    const failed = after([], start, { type: "TOOL_CALL_RESULT", messageId: "t", toolCallId: "c", content: [{ type: "text", text: "Error: no such city" }] });
    expect(callOf(failed)).toMatchObject({ state: "failed", result: "Error: no such city" });
  });

  test("a repeated start replaces the call", () => {
    const again = after([], start, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{" }, start, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" });
    expect((again[0] as AssistantMessage).calls).toHaveLength(1);
    expect(callOf(again)?.arguments).toBe("{}");
  });

  test("events of an unknown call change nothing", () => {
    const messages = [user("u")];
    expect(after(messages, { type: "TOOL_CALL_ARGS", toolCallId: "?", delta: "x" })).toBe(messages);
    expect(after(messages, { type: "TOOL_CALL_END", toolCallId: "?" })).toBe(messages);
    expect(after(messages, { type: "TOOL_CALL_RESULT", messageId: "t", toolCallId: "?", content: "" })).toBe(messages);
  });

  test("a card goes to its call or to its answer", () => {
    const messages = [answer("a", { calls: [call("c", { resultId: "t" })] }), answer("b")];
    const cards = after(
      messages,
      { type: "CUSTOM", name: "recto.ui", value: { messageId: "t", uiSchema: CARD } },
      { type: "CUSTOM", name: "recto.ui", value: { messageId: "b", uiSchema: CARD } },
    );
    expect(cards[0]).toMatchObject({ ui: null, calls: [{ ui: CARD }] });
    expect(cards[1]).toMatchObject({ ui: CARD });
  });
});

describe("progress and notes", () => {
  const progress = (messageId: string, done: number): AguiEvent => ({
    type: "ACTIVITY_SNAPSHOT",
    messageId,
    activityType: "recto.progress",
    content: { label: "Reading", status: "running", done, total: 10 },
  });

  test("progress of a call goes to the call", () => {
    const [message] = after([answer("a", { calls: [call("c")] })], progress("c-progress-1", 3));
    expect(message).toMatchObject({ calls: [{ progress: { done: 3 } }] });
  });

  test("progress of the run is one note, which the end of the run removes", () => {
    const messages = after([user("u")], progress("p", 1), progress("p", 2));
    expect(messages).toHaveLength(2);
    expect(messages[1]).toMatchObject({ role: "note", content: { done: 2 } });
    expect(after(messages, { type: "RUN_FINISHED", outcome: { type: "success" } })).toEqual([user("u")]);
  });

  test("notes about unusable files stay", () => {
    const event: AguiEvent = { type: "ACTIVITY_SNAPSHOT", messageId: "n", activityType: "recto.attachments", content: { notes: ["x"] } };
    const messages = after([], event, { type: "RUN_FINISHED", outcome: { type: "success" } });
    expect(messages).toMatchObject([{ role: "note", kind: "recto.attachments" }]);
  });
});

describe("ends and other events", () => {
  test.each<AguiEvent>([
    { type: "RUN_FINISHED", outcome: { type: "cancelled" } },
    { type: "RUN_ERROR", message: "no", code: "internal" },
  ])("$type ends all streams", (end) => {
    const open: Message[] = [{ role: "reasoning", id: "r", text: "", isStreaming: true }, answer("a", { isStreaming: true })];
    expect(after(open, end)).toMatchObject([{ isStreaming: false }, { isStreaming: false }]);
  });

  test("a discarded message disappears, and a snapshot replaces all messages", () => {
    const messages = [user("u"), answer("a"), answer("b")];
    const left = after(messages, { type: "CUSTOM", name: "recto.discarded", value: { messageId: "b" } });
    expect(left.map(({ id }) => id)).toEqual(["u", "a"]);
    const snapshot = after(left, { type: "MESSAGES_SNAPSHOT", messages: [{ id: "u", role: "user", content: "question u" }] });
    expect(snapshot.map(({ id }) => id)).toEqual(["u"]);
  });

  test("a snapshot keeps the details that it does not contain", () => {
    const file = { id: "f-0", name: "a.txt", kind: "document", url: "/f?1" } as const;
    const before = [
      user("u", { files: [file], run: "r", time: "2026-05-14T12:00:00Z" }),
      answer("a", { ui: CARD, run: "r", calls: [call("c", { progress: { label: "x", status: "running", done: 1 }, started: 5 })] }),
    ];
    const [question, reply] = after(before, {
      type: "MESSAGES_SNAPSHOT",
      messages: [
        { id: "u", role: "user", content: [{ type: "text", text: "Read" }, { type: "document", source: { type: "url", value: "/f?2" } }] },
        { id: "a", role: "assistant", content: "new", toolCalls: [{ id: "c", function: { name: "weather", arguments: "{}" } }] },
        { id: "t", role: "tool", toolCallId: "c", content: "22" },
      ],
    });
    expect(question).toMatchObject({ text: "Read", run: "r", time: "2026-05-14T12:00:00Z", files: [{ id: "f-0", url: "/f?2" }] });
    expect(reply).toMatchObject({ text: "new", ui: CARD, run: "r", calls: [{ state: "done", result: "22", started: 5 }] });
  });

  test("unknown events and steps change nothing", () => {
    const messages = [user("u")];
    expect(after(messages, { type: "STEP_STARTED", stepName: "compact" })).toBe(messages);
    expect(after(messages, { type: "RUN_STARTED", threadId: "t", runId: "r" })).toBe(messages);
    expect(after(messages, { type: "STATE_DELTA" } as unknown as AguiEvent)).toBe(messages);
    expect(after(messages, { type: "CUSTOM", name: "other", value: {} } as unknown as AguiEvent)).toBe(messages);
  });
});
