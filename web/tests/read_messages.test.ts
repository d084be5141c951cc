/** Messages of the API as messages of the page, and details that are merged later. */

import { expect, test } from "vitest";

import type { MessageRow } from "../src/api/agui.ts";
import type { ThreadDetails } from "../src/api/routes.ts";
import {
  hasMissedRun,
  isError,
  lastTurnCursor,
  mergeDetails,
  readMessages,
  textOf,
  unsentMessages,
} from "../src/conversation/read_messages.ts";
import { answer, user } from "./values.ts";

test("a user message has its text, files, run and time", () => {
  const row: MessageRow = {
    id: "u",
    role: "user",
    content: [{ type: "text", text: "Read it" }, { type: "document", source: { type: "url", value: "/f" }, metadata: { filename: "a.csv" } }],
    timestamp: "2026-05-14T12:00:00.000Z",
    run: "r",
    files: [{ id: "x-0", name: "a.csv", type: "document", mimeType: "text/csv", url: "/f?signed" }],
  };
  expect(readMessages([row])).toEqual([
    {
      role: "user",
      id: "u",
      text: "Read it",
      files: [{ id: "x-0", name: "a.csv", kind: "document", url: "/f?signed" }],
      status: "sent",
      run: "r",
      time: "2026-05-14T12:00:00.000Z",
    },
  ]);
});

test("without details, files come from the parts, and a binary part is an image", () => {
  const content = [
    { type: "binary", url: "/p", mimeType: "image/png" },
    { type: "audio", source: { type: "url", value: "/s" }, metadata: { filename: "s.mp3" } },
  ] as const;
  const [message] = readMessages([{ id: "u", role: "user", content }]);
  expect(message).toMatchObject({
    text: "",
    files: [
      { id: null, kind: "image", url: "/p" },
      { name: "s.mp3", kind: "audio", url: "/s" },
    ],
  });
});

test("results go to their calls and mark failures", () => {
  const toolCalls = ["a", "b", "c"].map((id) => ({ id, function: { name: "f", arguments: "{}" } }));
  const messages = readMessages([
    { id: "m", role: "assistant", toolCalls },
    { id: "1", role: "tool", toolCallId: "a", content: "fine" },
    { id: "2", role: "tool", toolCallId: "b", content: "x", error: "broke" },
  ]);
  expect(messages).toHaveLength(1);
  expect(messages[0]).toMatchObject({
    text: "",
    calls: [
      { state: "done", result: "fine", resultId: "1" },
      { state: "failed", result: "x" },
      { state: "running", result: null },
    ],
  });
});

test("reasoning and notes are read, and instructions and malformed rows are dropped", () => {
  const messages = readMessages([
    { id: "s", role: "system", content: "secret" },
    { id: "d", role: "developer", content: "secret" },
    { id: "r", role: "reasoning", content: "Hm" },
    { id: "n", role: "activity", activityType: "recto.attachments", content: { notes: ["x"] } },
    { id: "o", role: "activity", activityType: "recto.attachments", content: "text" },
    { id: "p", role: "activity", content: {} },
  ]);
  expect(messages.map(({ id }) => id)).toEqual(["r", "n"]);
});

test("queued messages and incomplete answers keep their status", () => {
  const [question, reply] = readMessages([
    { id: "u", role: "user", content: "hi", status: "queued" },
    { id: "a", role: "assistant", content: "hal", status: "interrupted" },
  ]);
  expect(question).toMatchObject({ status: "queued" });
  expect(reply).toMatchObject({ status: "interrupted" });
});

test("text and errors of results", () => {
  expect(textOf(undefined)).toBe("");
  expect(textOf([{ type: "text", text: "a" }, { type: "image" }, { type: "text", text: "b" }])).toBe("a\nb");
  expect(isError(" Error: x")).toBe(true);
  expect(isError("No Error: x")).toBe(false);
});

const IDLE = { activeRun: null, queued: [] } as unknown as ThreadDetails;

test("details add file ids and statuses to the newest turn, and change nothing else", () => {
  const messages = [
    user("u1"),
    answer("a1"),
    user("u2", { files: [{ id: null, name: "a.txt", kind: "document", url: "/f" }] }),
    answer("a2"),
  ];
  const file = { id: "f-0", name: "a.txt", type: "document", mimeType: null, url: "/f?2" };
  const details = readMessages([
    { id: "u2", role: "user", content: "question u2", files: [file], run: "r", timestamp: "2026-05-14T12:00:00Z" },
    { id: "a2", role: "assistant", content: "other text", status: "interrupted" },
  ]);
  expect(lastTurnCursor(messages)).toBe("a1");
  const [one, two, three, four] = mergeDetails(messages, details);
  expect([one, two]).toEqual(messages.slice(0, 2));
  expect(three).toMatchObject({ files: [{ id: "f-0" }], run: "r" });
  expect(four).toMatchObject({ text: "answer a2", status: "interrupted" });
});

test("details mark failed calls, and calls without a result stay unchanged", () => {
  const row = (id: string) => ({ id, function: { name: "send", arguments: "{}" } });
  const calls = { id: "a", role: "assistant", toolCalls: [row("c1"), row("c2")] } as const;
  const messages = readMessages([calls]);
  const details = readMessages([calls, { id: "t", role: "tool", toolCallId: "c1", content: "No such tool.", error: "refused" }]);
  const [message] = mergeDetails(messages, details);
  expect(message?.role === "assistant" && message.calls.map((call) => call.state)).toEqual(["failed", "running"]);
});

test("a queued message that the server no longer has means a missed run", () => {
  const queued = [user("u", { status: "queued" })];
  expect(hasMissedRun(queued, IDLE)).toBe(true);
  expect(hasMissedRun([user("u")], IDLE)).toBe(false);
  expect(hasMissedRun(queued, { ...IDLE, activeRun: "r" })).toBe(false);
  expect(hasMissedRun(queued, { ...IDLE, queued: [{}] } as unknown as ThreadDetails)).toBe(false);
});

test("a reload keeps messages that the server does not have", () => {
  const messages = [user("u1"), user("u2", { status: "unsent" }), user("u3", { status: "sending" })];
  expect(unsentMessages(messages, [{ id: "u3", role: "user" }]).map((message) => message.id)).toEqual(["u2"]);
});
