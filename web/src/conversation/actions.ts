/** User actions in a thread: send, stop, retry, roll back, fork and answer calls. */

import { batch } from "@preact/signals";

import { ApiError } from "../api/request.ts";
import * as routes from "../api/routes.ts";
import type { Agent } from "../api/routes.ts";
import { newId } from "../state/ids.ts";
import { notifyTabs } from "../state/tabs.ts";
import type { AttachedFile, UserMessage } from "./messages.ts";
import type { OpenThread } from "./open_thread.ts";

export interface MessageInput {
  readonly text: string;
  readonly files: readonly AttachedFile[];
  /** Skill for this run. `core` leaves the active skill. */
  readonly skill?: string | null;
}

const MAX_TRIES = 5;

/** Send a message. Return true once the server accepts it. After an error, mark it as unsent and set the thread's problem. */
export async function submitMessage(thread: OpenThread, agent: Agent | null, input: MessageInput): Promise<boolean> {
  const message: UserMessage = {
    role: "user",
    id: newId(),
    text: input.text,
    files: input.files,
    status: "sending",
    run: null,
    time: new Date().toISOString(),
    ...(input.skill ? { skill: input.skill } : {}),
  };
  batch(() => {
    thread.problem.value = null;
    // Unsent messages are not part of the conversation, so keep them below it.
    const unsent = thread.messages.value.filter((other) => other.role === "user" && other.status === "unsent");
    thread.messages.value = [...thread.messages.value.filter((other) => !unsent.includes(other)), message, ...unsent];
  });
  const body = runBody(thread, agent, [userRow(message)], input.skill ? { skill: input.skill } : {});
  return await admit(thread, () => routes.startRun(body), message.id);
}

/** Send the results of pending calls, such as forms. */
export async function answerCalls(
  thread: OpenThread,
  agent: Agent | null,
  results: ReadonlyMap<string, string>,
): Promise<boolean> {
  const question = thread.messages.value.findLast((message) => message.role === "user");
  if (!question) return false;
  const rows = [...results].map(([toolCallId, content]) => ({ id: newId(), role: "tool", toolCallId, content }));
  const body = runBody(thread, agent, [userRow(question), ...rows], {});
  return await admit(thread, () => routes.startRun(body), null);
}

export interface Decision {
  readonly interruptId: string;
  readonly status: "resolved" | "cancelled";
  readonly payload?: { approved: boolean; message?: string; arguments?: unknown };
}

/** Approve or deny calls. */
export async function decide(thread: OpenThread, run: string, decisions: readonly Decision[]): Promise<boolean> {
  return await admit(thread, () => routes.resumeRun(run, decisions), null);
}

export async function stop(thread: OpenThread): Promise<void> {
  const run = thread.run.value;
  if (run !== null) await routes.cancelRun(run);
}

export async function compact(thread: OpenThread): Promise<boolean> {
  const runId = newId();
  return await admit(thread, () => routes.compactThread(thread.id, runId), null);
}

/** Roll back a message and everything after it. The result has its text and files for editing. */
export async function rollBackTo(thread: OpenThread, messageId: string): Promise<routes.RollbackResult> {
  const rolledBack = await routes.rollBack(thread.id, messageId);
  await thread.reload();
  notifyTabs({ thread: thread.id, change: "view" });
  return rolledBack;
}

export async function undo(thread: OpenThread): Promise<void> {
  await routes.undoRollback(thread.id);
  await thread.reload();
  notifyTabs({ thread: thread.id, change: "view" });
}

/** Ask for another response to a message. Undo restores the first one. */
export async function tryAgain(thread: OpenThread, agent: Agent | null, message: UserMessage): Promise<boolean> {
  const rollback = await rollBackTo(thread, message.id);
  return await submitMessage(thread, agent, { text: rollback.content, files: filesOf(rollback, message.files) });
}

/** Return the files of a rolled-back message with fresh signed URLs. */
export function filesOf(rollback: routes.RollbackResult, files: readonly AttachedFile[]): AttachedFile[] {
  return (rollback.files as readonly { name: string | null; url: string; type: string }[]).map((file, place) => ({
    id: null,
    name: file.name ?? files[place]?.name ?? "",
    kind: files[place]?.kind ?? "document",
    url: file.url,
  }));
}

/** Fork the thread after the response to a message and return the id of the copy. */
export async function fork(thread: OpenThread, message: UserMessage): Promise<string> {
  const users = thread.messages.value.filter((other) => other.role === "user" && other.status === "sent");
  const next = users[users.findIndex((other) => other.id === message.id) + 1];
  const copy = await routes.forkThread(thread.id, next?.id ?? null);
  return copy.id;
}

function runBody(
  thread: OpenThread,
  agent: Agent | null,
  messages: readonly unknown[],
  props: Readonly<Record<string, string>>,
): unknown {
  return {
    threadId: thread.id,
    runId: newId(),
    protocolVersion: "1.0",
    messages,
    tools: agent?.forms ?? [],
    forwardedProps: {
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      ...(agent ? { agent: agent.name } : {}),
      ...props,
    },
  };
}

export function userRow(message: Pick<UserMessage, "id" | "text" | "files">): unknown {
  const files = message.files.map((file) => ({ type: file.kind, source: { type: "url", value: file.url } }));
  const text = message.text ? [{ type: "text", text: message.text }] : [];
  return { id: message.id, role: "user", content: files.length ? [...text, ...files] : message.text };
}

/** Start a run and follow it. Retries are safe, because the request contains the run id. */
async function admit(
  thread: OpenThread,
  request: () => Promise<routes.RunAdmission>,
  message: string | null,
): Promise<boolean> {
  for (let tries = 1; ; tries += 1) {
    try {
      const admission = await request();
      batch(() => {
        thread.isNew.value = false;
        thread.problem.value = null;
        updateMessage(thread, message, { status: thread.isRunning.value ? "queued" : "sent", run: admission.taskId });
      });
      notifyTabs({ thread: thread.id, change: "run" });
      if (!thread.isRunning.value) thread.follow(admission.taskId);
      return true;
    } catch (error) {
      const apiError = error instanceof ApiError ? error : new ApiError(0, String(error));
      if (apiError.isTransient && tries < MAX_TRIES) {
        await new Promise((resolve) => setTimeout(resolve, 1000 * (apiError.retryAfter ?? 2 ** (tries - 2))));
        continue;
      }
      batch(() => {
        updateMessage(thread, message, { status: "unsent" });
        thread.problem.value = { code: apiError.status ? "refused" : "offline", message: apiError.detail };
      });
      return false;
    }
  }
}

function updateMessage(thread: OpenThread, id: string | null, change: Partial<UserMessage>): void {
  if (id === null) return;
  thread.messages.value = thread.messages.value.map((message) =>
    message.role === "user" && message.id === id ? { ...message, ...change } : message,
  );
}
