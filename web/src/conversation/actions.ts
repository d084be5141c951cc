/** What a person does in a thread: say something, stop, try again, go back, answer what waits. */

import { batch } from "@preact/signals";

import { ApiError } from "../api/request.ts";
import * as routes from "../api/routes.ts";
import type { Agent } from "../api/routes.ts";
import { newId } from "../state/ids.ts";
import { tellTabs } from "../state/tabs.ts";
import type { AttachedFile, UserMessage } from "./messages.ts";
import type { OpenThread } from "./open_thread.ts";

export interface Words {
  readonly text: string;
  readonly files: readonly AttachedFile[];
  /** A skill to go on in from here; `core` leaves the one in force. */
  readonly skill?: string | null;
}

const TRIES = 5;

/** Say something. True once the server has it; else it is marked as unsent and the reason is the thread's problem. */
export async function say(thread: OpenThread, agent: Agent | null, words: Words): Promise<boolean> {
  const message: UserMessage = {
    role: "user",
    id: newId(),
    text: words.text,
    files: words.files,
    status: "sending",
    run: null,
    time: new Date().toISOString(),
    ...(words.skill ? { skill: words.skill } : {}),
  };
  batch(() => {
    thread.problem.value = null;
    // What the server never had is no part of the conversation, and stays below it.
    const unsent = thread.messages.value.filter((one) => one.role === "user" && one.status === "unsent");
    thread.messages.value = [...thread.messages.value.filter((one) => !unsent.includes(one)), message, ...unsent];
  });
  const body = runBody(thread, agent, [userRow(message)], words.skill ? { skill: words.skill } : {});
  return await admit(thread, () => routes.startRun(body), message.id);
}

/** Bring results of calls that wait for this page, such as forms. */
export async function answerCalls(
  thread: OpenThread,
  agent: Agent | null,
  results: ReadonlyMap<string, string>,
): Promise<boolean> {
  const asked = thread.messages.value.findLast((message) => message.role === "user");
  if (!asked) return false;
  const rows = [...results].map(([toolCallId, content]) => ({ id: newId(), role: "tool", toolCallId, content }));
  const body = runBody(thread, agent, [userRow(asked), ...rows], {});
  return await admit(thread, () => routes.startRun(body), null);
}

export interface Decision {
  readonly interruptId: string;
  readonly status: "resolved" | "cancelled";
  readonly payload?: { approved: boolean; message?: string; arguments?: unknown };
}

/** Agree to calls, or not. */
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

/** Take a message and all that follows out of view; its words come back to be edited. */
export async function goBackTo(thread: OpenThread, messageId: string): Promise<routes.RolledBack> {
  const rolledBack = await routes.rollBack(thread.id, messageId);
  await thread.reload();
  tellTabs({ thread: thread.id, change: "view" });
  return rolledBack;
}

export async function undo(thread: OpenThread): Promise<void> {
  await routes.undoRollback(thread.id);
  await thread.reload();
  tellTabs({ thread: thread.id, change: "view" });
}

/** Have a message answered again: what was answered goes out of view, and undo brings it back. */
export async function tryAgain(thread: OpenThread, agent: Agent | null, message: UserMessage): Promise<boolean> {
  const said = await goBackTo(thread, message.id);
  return await say(thread, agent, { text: said.content, files: filesOf(said, message.files) });
}

/** The files of a message that was taken back, each with the url that was signed anew. */
export function filesOf(said: routes.RolledBack, known: readonly AttachedFile[]): AttachedFile[] {
  return (said.files as readonly { name: string | null; url: string; type: string }[]).map((file, place) => ({
    id: null,
    name: file.name ?? known[place]?.name ?? "",
    kind: known[place]?.kind ?? "document",
    url: file.url,
  }));
}

/** A copy that ends with the answer to a message; of the last one, the whole thread. */
export async function fork(thread: OpenThread, message: UserMessage): Promise<string> {
  const users = thread.messages.value.filter((one) => one.role === "user" && one.status === "said");
  const next = users[users.findIndex((one) => one.id === message.id) + 1];
  const made = await routes.forkThread(thread.id, next?.id ?? null);
  return made.id;
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

/** Have a run admitted, asking again where nobody answered: its id makes that harmless. Then follow it. */
async function admit(
  thread: OpenThread,
  ask: () => Promise<routes.Admitted>,
  message: string | null,
): Promise<boolean> {
  for (let tries = 1; ; tries += 1) {
    try {
      const admitted = await ask();
      batch(() => {
        thread.isNew.value = false;
        thread.problem.value = null;
        mark(thread, message, { status: thread.isRunning.value ? "queued" : "said", run: admitted.taskId });
      });
      tellTabs({ thread: thread.id, change: "run" });
      if (!thread.isRunning.value) thread.follow(admitted.taskId);
      return true;
    } catch (error) {
      const refusal = error instanceof ApiError ? error : new ApiError(0, String(error));
      if (refusal.isPassing && tries < TRIES) {
        await new Promise((resolve) => setTimeout(resolve, 1000 * (refusal.retryAfter ?? 2 ** (tries - 2))));
        continue;
      }
      batch(() => {
        mark(thread, message, { status: "unsent" });
        thread.problem.value = { code: refusal.status ? "refused" : "unreached", message: refusal.detail };
      });
      return false;
    }
  }
}

function mark(thread: OpenThread, id: string | null, change: Partial<UserMessage>): void {
  if (id === null) return;
  thread.messages.value = thread.messages.value.map((message) =>
    message.role === "user" && message.id === id ? { ...message, ...change } : message,
  );
}
