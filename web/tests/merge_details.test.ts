/** What is read of a thread once a run has ended. */

import { expect, test } from "vitest";

import type { ThreadDetails } from "../src/api/routes.ts";
import {
  hasMissedRun,
  lastTurnCursor,
  mergeDetails,
  readMessages,
  unsentMessages,
} from "../src/conversation/read_messages.ts";
import { answer, user } from "./values.ts";

const IDLE = { activeRun: null, queued: [] } as unknown as ThreadDetails;

test("the newest turn gets the ids of its files and why it is not whole; nothing else changes", () => {
  const shown = [
    user("u1"),
    answer("a1"),
    user("u2", { files: [{ id: null, name: "a.txt", kind: "document", url: "/f" }] }),
    answer("a2"),
  ];
  const file = { id: "f-0", name: "a.txt", type: "document", mimeType: null, url: "/f?2" };
  const told = readMessages([
    { id: "u2", role: "user", content: "said u2", files: [file], run: "r", timestamp: "2026-05-14T12:00:00Z" },
    { id: "a2", role: "assistant", content: "other words", status: "interrupted" },
  ]);
  expect(lastTurnCursor(shown)).toBe("a1");
  const [one, two, three, four] = mergeDetails(shown, told);
  expect([one, two]).toEqual(shown.slice(0, 2));
  expect(three).toMatchObject({ files: [{ id: "f-0" }], run: "r" });
  expect(four).toMatchObject({ text: "answer a2", status: "interrupted" });
});

test("a call that failed is told as such, and one without a result stays as it is", () => {
  const row = (id: string) => ({ id, function: { name: "send", arguments: "{}" } });
  const calls = { id: "a", role: "assistant", toolCalls: [row("c1"), row("c2")] } as const;
  const shown = readMessages([calls]);
  const told = readMessages([calls, { id: "t", role: "tool", toolCallId: "c1", content: "No such tool.", error: "refused" }]);
  const [message] = mergeDetails(shown, told);
  expect(message?.role === "assistant" && message.calls.map((call) => call.state)).toEqual(["failed", "running"]);
});

test("a run is missed where a message waits that the server knows nothing of any more", () => {
  const queued = [user("u", { status: "queued" })];
  expect(hasMissedRun(queued, IDLE)).toBe(true);
  expect(hasMissedRun([user("u")], IDLE)).toBe(false);
  expect(hasMissedRun(queued, { ...IDLE, activeRun: "r" })).toBe(false);
  expect(hasMissedRun(queued, { ...IDLE, queued: [{}] } as unknown as ThreadDetails)).toBe(false);
});

test("what the server has not stays, whatever is read again", () => {
  const known = [user("u1"), user("u2", { status: "unsent" }), user("u3", { status: "sending" })];
  expect(unsentMessages(known, [{ id: "u3", role: "user" }]).map((message) => message.id)).toEqual(["u2"]);
});
