/** Messages of the server, read into what is shown. */

import { expect, test } from "vitest";

import type { MessageRow } from "../src/api/agui.ts";
import { isError, readMessages, textOf } from "../src/conversation/read_messages.ts";

test("a user's message has its words, files by the model's ids, run and time", () => {
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

test("without details files are read from the parts, and a binary is a picture", () => {
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

test("results stand at their calls, failed ones as such", () => {
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

test("thoughts and notes are read; instructions and what is malformed are not shown", () => {
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

test("a queued message says so, and an answer that is not whole too", () => {
  const [said, told] = readMessages([
    { id: "u", role: "user", content: "hi", status: "queued" },
    { id: "a", role: "assistant", content: "hal", status: "interrupted" },
  ]);
  expect(said).toMatchObject({ status: "queued" });
  expect(told).toMatchObject({ status: "interrupted" });
});

test("words and errors", () => {
  expect(textOf(undefined)).toBe("");
  expect(textOf([{ type: "text", text: "a" }, { type: "image" }, { type: "text", text: "b" }])).toBe("a\nb");
  expect(isError(" Error: x")).toBe(true);
  expect(isError("No Error: x")).toBe(false);
});
