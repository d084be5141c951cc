/** Sending messages from any view. A new thread gets its URL and its place in the list. */

import { signal } from "@preact/signals";

import type { Agent, RollbackResult } from "../../api/routes.ts";
import { filesOf, type MessageInput, rollBackTo, submitMessage, undo } from "../../conversation/actions.ts";
import type { UserMessage } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { focusMessageBox } from "../../parts/focus.ts";
import { currentThread } from "../../state/current_thread.ts";
import { go } from "../../state/route.ts";
import { refreshThreads } from "../../state/threads.ts";
import { draftOf } from "../composer/draft.ts";

export async function sendMessage(thread: OpenThread, agent: Agent | null, input: MessageInput): Promise<void> {
  const wasNew = thread.isNew.value;
  if (!(await submitMessage(thread, agent, input))) return;
  if (wasNew && currentThread.value === thread) go({ view: "chat", thread: thread.id }, { replace: true });
  await refreshThreads();
}

/** Send an unsent message again, with a new id. */
export async function resendMessage(thread: OpenThread, agent: Agent | null, message: UserMessage): Promise<void> {
  removeUnsent(thread, message);
  await sendMessage(thread, agent, { text: message.text, files: message.files, skill: message.skill ?? null });
}

/** Remove a message that the server never received. */
function removeUnsent(thread: OpenThread, message: UserMessage): void {
  thread.messages.value = thread.messages.value.filter((other) => other !== message);
  thread.problem.value = null;
}

export interface ChangedFiles {
  readonly thread: OpenThread;
  readonly messageId: string;
  readonly files: NonNullable<RollbackResult["changedFiles"]>;
}

/** Workspace files that changed since the message. A dialog offers to restore them. */
export const changedFiles = signal<ChangedFiles | null>(null);

export async function editMessage(thread: OpenThread, message: UserMessage): Promise<void> {
  const draft = draftOf(thread);
  if (message.status === "unsent") {
    removeUnsent(thread, message);
    draft.restoreMessage(message.text, message.files);
  } else {
    const rollback = await rollBackTo(thread, message.id);
    draft.restoreMessage(rollback.content, filesOf(rollback, message.files));
    if (rollback.changedFiles?.length) changedFiles.value = { thread, messageId: rollback.messageId, files: rollback.changedFiles };
  }
  focusMessageBox();
}

/** Return the last message that the user can edit, or null during a run. */
export function lastEditable(thread: OpenThread): UserMessage | null {
  if (thread.isRunning.value) return null;
  const last = thread.messages.value.findLast((message) => message.role === "user");
  return last?.status === "sent" || last?.status === "unsent" ? last : null;
}

export async function undoEdit(thread: OpenThread): Promise<void> {
  await undo(thread);
  draftOf(thread).discardRestored();
}
