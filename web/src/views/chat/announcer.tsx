/** Reads an answer aloud once it has ended: word by word nobody could follow it. */

import { useSignal } from "@preact/signals";

import { answerText, turnsOf } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { useRunEnd } from "./run_end.ts";
import { words } from "./words.ts";

export function Announcer({ thread }: { thread: OpenThread }) {
  const said = useSignal("");
  useRunEnd(thread, () => {
    const last = turnsOf(thread.messages.peek()).findLast((turn) => turn.answers.length > 0);
    said.value = last ? answerText(last) : "";
  });
  return (
    <div class="hidden-but-read" role="status" aria-live="polite" data-announcer>
      {thread.isRunning.value ? words.value.working : said.value}
    </div>
  );
}
