/** What each event of a run does to the conversation. */

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

describe("words", () => {
  test("an answer is opened, grows and is closed", () => {
    const start: AguiEvent = { type: "TEXT_MESSAGE_START", messageId: "a" };
    const open = after([user("u")], start, { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "Hel" });
    expect(open[1]).toMatchObject({ role: "assistant", text: "Hel", isStreaming: true, run: "run-1" });
    const done = after(open, { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "lo" }, { type: "TEXT_MESSAGE_END", messageId: "a" });
    expect(done[1]).toMatchObject({ text: "Hello", isStreaming: false });
    expect(done[0]).toBe(open[0]);
  });

  test("one that is opened again goes on where it was", () => {
    const again = after([answer("a", { text: "Half" })], { type: "TEXT_MESSAGE_START", messageId: "a" }, { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: " more" });
    expect(again).toHaveLength(1);
    expect(again[0]).toMatchObject({ text: "Half more", isStreaming: true });
  });

  test("thoughts are messages of their own", () => {
    const thought = after(
      [],
      { type: "REASONING_MESSAGE_START", messageId: "r" },
      { type: "REASONING_MESSAGE_CONTENT", messageId: "r", delta: "Hm" },
      { type: "REASONING_MESSAGE_CONTENT", messageId: "r", delta: "m" },
    );
    expect(thought).toEqual([{ role: "reasoning", id: "r", text: "Hmm", isStreaming: true }]);
    expect(after(thought, { type: "REASONING_MESSAGE_END", messageId: "r" })[0]).toMatchObject({ isStreaming: false });
  });
});

describe("calls", () => {
  const start: AguiEvent = { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "weather", parentMessageId: "a" };

  function callOf(messages: readonly Message[]) {
    return (messages.findLast((message) => message.role === "assistant") as AssistantMessage).calls[0];
  }

  test("a call is written, runs and has its result", () => {
    const written = after([], start, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: '{"a"' }, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: ":1}" });
    expect(callOf(written)).toMatchObject({ name: "weather", arguments: '{"a":1}', state: "writing" });
    const running = after(written, { type: "TOOL_CALL_END", toolCallId: "c" });
    expect(callOf(running)).toMatchObject({ state: "running", started: 1000 });
    const done = applyEvent(running, { type: "TOOL_CALL_RESULT", messageId: "t", toolCallId: "c", content: "22" }, { now: 1500, run: "run-1" });
    expect(callOf(done)).toMatchObject({ state: "done", result: "22", resultId: "t", started: 1000, ended: 1500 });
  });

  test("a result that begins with Error: has failed", () => {
    const failed = after([], start, { type: "TOOL_CALL_RESULT", messageId: "t", toolCallId: "c", content: [{ type: "text", text: "Error: no such city" }] });
    expect(callOf(failed)).toMatchObject({ state: "failed", result: "Error: no such city" });
  });

  test("one that is told again from its excerpt is there once", () => {
    const again = after([], start, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{" }, start, { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" });
    expect((again[0] as AssistantMessage).calls).toHaveLength(1);
    expect(callOf(again)?.arguments).toBe("{}");
  });

  test("events of a call that is not there change nothing", () => {
    const messages = [user("u")];
    expect(after(messages, { type: "TOOL_CALL_ARGS", toolCallId: "?", delta: "x" })).toBe(messages);
    expect(after(messages, { type: "TOOL_CALL_END", toolCallId: "?" })).toBe(messages);
    expect(after(messages, { type: "TOOL_CALL_RESULT", messageId: "t", toolCallId: "?", content: "" })).toBe(messages);
  });

  test("a card of a result stands at its call, one of an answer at the answer", () => {
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

  test("progress of a call stands at the call", () => {
    const [told] = after([answer("a", { calls: [call("c")] })], progress("c-progress-1", 3));
    expect(told).toMatchObject({ calls: [{ progress: { done: 3 } }] });
  });

  test("progress of the run is a note that each one replaces, and that goes with the run", () => {
    const told = after([user("u")], progress("p", 1), progress("p", 2));
    expect(told).toHaveLength(2);
    expect(told[1]).toMatchObject({ role: "note", content: { done: 2 } });
    expect(after(told, { type: "RUN_FINISHED", outcome: { type: "success" } })).toEqual([user("u")]);
  });

  test("files that could not be used stay", () => {
    const event: AguiEvent = { type: "ACTIVITY_SNAPSHOT", messageId: "n", activityType: "recto.attachments", content: { notes: ["x"] } };
    const told = after([], event, { type: "RUN_FINISHED", outcome: { type: "success" } });
    expect(told).toMatchObject([{ role: "note", kind: "recto.attachments" }]);
  });
});

describe("ends and other news", () => {
  test.each<AguiEvent>([
    { type: "RUN_FINISHED", outcome: { type: "cancelled" } },
    { type: "RUN_ERROR", message: "no", code: "internal" },
  ])("nothing is written any more after $type", (end) => {
    const open: Message[] = [{ role: "reasoning", id: "r", text: "", isStreaming: true }, answer("a", { isStreaming: true })];
    expect(after(open, end)).toMatchObject([{ isStreaming: false }, { isStreaming: false }]);
  });

  test("what is taken back is gone, and a snapshot takes the place of all", () => {
    const messages = [user("u"), answer("a"), answer("b")];
    const left = after(messages, { type: "CUSTOM", name: "recto.discarded", value: { messageId: "b" } });
    expect(left.map(({ id }) => id)).toEqual(["u", "a"]);
    const snapshot = after(left, { type: "MESSAGES_SNAPSHOT", messages: [{ id: "u", role: "user", content: "said u" }] });
    expect(snapshot.map(({ id }) => id)).toEqual(["u"]);
  });

  test("what a snapshot has no place for stays", () => {
    const file = { id: "f-0", name: "a.txt", kind: "document", url: "/f?1" } as const;
    const known = [
      user("u", { files: [file], run: "r", time: "2026-05-14T12:00:00Z" }),
      answer("a", { ui: CARD, run: "r", calls: [call("c", { progress: { label: "x", status: "running", done: 1 }, started: 5 })] }),
    ];
    const [said, told] = after(known, {
      type: "MESSAGES_SNAPSHOT",
      messages: [
        { id: "u", role: "user", content: [{ type: "text", text: "Read" }, { type: "document", source: { type: "url", value: "/f?2" } }] },
        { id: "a", role: "assistant", content: "new", toolCalls: [{ id: "c", function: { name: "weather", arguments: "{}" } }] },
        { id: "t", role: "tool", toolCallId: "c", content: "22" },
      ],
    });
    expect(said).toMatchObject({ text: "Read", run: "r", time: "2026-05-14T12:00:00Z", files: [{ id: "f-0", url: "/f?2" }] });
    expect(told).toMatchObject({ text: "new", ui: CARD, run: "r", calls: [{ state: "done", result: "22", started: 5 }] });
  });

  test("types that nobody knows, and steps, change nothing", () => {
    const messages = [user("u")];
    expect(after(messages, { type: "STEP_STARTED", stepName: "compact" })).toBe(messages);
    expect(after(messages, { type: "RUN_STARTED", threadId: "t", runId: "r" })).toBe(messages);
    expect(after(messages, { type: "STATE_DELTA" } as unknown as AguiEvent)).toBe(messages);
    expect(after(messages, { type: "CUSTOM", name: "other", value: {} } as unknown as AguiEvent)).toBe(messages);
  });
});
