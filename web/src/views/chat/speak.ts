/** Saying something from anywhere in the page. A new thread gets its address and its place in the list. */

import type { Agent } from "../../api/routes.ts";
import { say, type Words } from "../../conversation/actions.ts";
import type { UserMessage } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { current } from "../../state/current.ts";
import { go } from "../../state/route.ts";
import { refreshThreads } from "../../state/threads.ts";

export async function speak(thread: OpenThread, agent: Agent | null, words: Words): Promise<void> {
  const wasNew = thread.isNew.value;
  if (!(await say(thread, agent, words))) return;
  if (wasNew && current.value === thread) go({ view: "chat", thread: thread.id }, { replace: true });
  await refreshThreads();
}

/** One that was not taken is said again, in the place of the first. */
export async function speakAgain(thread: OpenThread, agent: Agent | null, message: UserMessage): Promise<void> {
  dropUnsent(thread, message);
  await speak(thread, agent, { text: message.text, files: message.files, skill: message.skill ?? null });
}

/** The server never had it, so it is gone without a rollback. */
export function dropUnsent(thread: OpenThread, message: UserMessage): void {
  thread.messages.value = thread.messages.value.filter((one) => one !== message);
  thread.problem.value = null;
}
