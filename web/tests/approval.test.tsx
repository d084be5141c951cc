/** Approval of a call on a page that opened after the call paused. */

import { expect, test } from "vitest";

import { OpenThread } from "../src/conversation/open_thread.ts";
import { Chat } from "../src/views/chat/chat.tsx";
import { draw, press, serve, texts } from "./page.ts";

const interrupt = { id: "i", runId: "r", toolCallId: "c", tool: "send", arguments: '{"text": "hello all"}', expiresAt: null };
const details = { id: "t", title: "T", agent: "helper", updated: "1", activeRun: null, queued: [], pendingCalls: [] };
const toolCalls = [{ id: "c", type: "function", function: { name: "send", arguments: interrupt.arguments } }];
const messages = [
  { id: "u", role: "user", content: "Send it" },
  { id: "a", role: "assistant", content: "", toolCalls },
];

test("P11: a pending approval survives a reload, and approving it resumes the run", async () => {
  const answers: Record<string, unknown> = {
    "GET /agent/threads/t": { ...details, interrupts: [interrupt] },
    "GET /agent/threads/t/messages": { messages, next: null, activeRun: null },
    "POST /agent/runs/r/resume": { taskId: "s", threadId: "t", runId: "s", created: "" },
    "GET /agent/runs/s/events": 'data: {"type": "RUN_FINISHED", "outcome": {"type": "success"}}\n\n',
  };
  const requestsOf = serve(answers);
  const page = draw(<Chat thread={new OpenThread("t")} onOpenList={() => {}} />);
  await expect.poll(() => texts(page, ".approval h2")).toEqual(["Allow call to send?"]);
  expect(texts(page, ".approval").join()).toContain("hello all");
  answers["GET /agent/threads/t"] = { ...details, interrupts: [] };
  await press(page, "Approve");
  await expect.poll(() => texts(page, ".approval")).toEqual([]);
  const resume = [{ interruptId: "i", status: "resolved", payload: { approved: true } }];
  expect(requestsOf("POST /agent/runs/r/resume").map(({ body }) => body)).toEqual([{ resume }]);
});
