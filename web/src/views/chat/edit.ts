/** Taking a message back into the box, and undoing that. */

import { signal } from "@preact/signals";

import type { RolledBack } from "../../api/routes.ts";
import { filesOf, goBackTo, undo } from "../../conversation/actions.ts";
import type { UserMessage } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { draftOf } from "../composer/draft.ts";
import { focusBox } from "../composer/focus.ts";
import { dropUnsent } from "./speak.ts";

export interface ChangedFiles {
  readonly thread: OpenThread;
  readonly messageId: string;
  readonly files: NonNullable<RolledBack["changedFiles"]>;
}

/** Files that changed since a message that was taken back; a person is asked about them. */
export const changedFiles = signal<ChangedFiles | null>(null);

export async function edit(thread: OpenThread, message: UserMessage): Promise<void> {
  const draft = draftOf(thread);
  if (message.status === "unsent") {
    dropUnsent(thread, message);
    draft.bringBack(message.text, message.files);
  } else {
    const said = await goBackTo(thread, message.id);
    draft.bringBack(said.content, filesOf(said, message.files));
    if (said.changedFiles?.length) changedFiles.value = { thread, messageId: said.messageId, files: said.changedFiles };
  }
  focusBox();
}

/** The last message that can be edited; null while a run is at work. */
export function lastEditable(thread: OpenThread): UserMessage | null {
  if (thread.isRunning.value) return null;
  const last = thread.messages.value.findLast((message) => message.role === "user");
  return last?.status === "said" || last?.status === "unsent" ? last : null;
}

export async function undoEdit(thread: OpenThread): Promise<void> {
  await undo(thread);
  draftOf(thread).takeBack();
}
