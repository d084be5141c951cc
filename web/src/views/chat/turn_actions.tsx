/** What can be done with an answer: copy it, have another, go on in a copy, see what the model saw. */

import type { Agent } from "../../api/routes.ts";
import { fork, tryAgain } from "../../conversation/actions.ts";
import { answerText, runOf, type Turn, type UserMessage } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { copyText } from "../../parts/clipboard.ts";
import { IconButton } from "../../parts/icon_button.tsx";
import { notify, notifyError } from "../../state/notices.ts";
import { go } from "../../state/route.ts";
import { refreshThreads } from "../../state/threads.ts";
import { words } from "./words.ts";

interface Props {
  readonly turn: Turn;
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

export function AnswerActions({ turn, thread, agent }: Props) {
  const text = words.value;
  const { user } = turn;
  const run = runOf(turn);
  const isBusy = thread.isRunning.value;
  if (!turn.answers.length && user?.status !== "said") return null;
  return (
    <div class="actions" role="group" aria-label={text.actions}>
      {answerText(turn) && <IconButton icon="copy" label={text.copy} onClick={() => void copyAnswer(turn)} />}
      {user && (
        <>
          <IconButton
            icon="retry"
            label={text.tryAgain}
            disabled={isBusy}
            onClick={() => void tryAgain(thread, agent, user).catch(notifyError)}
          />
          <IconButton
            icon="fork"
            label={text.fork}
            disabled={isBusy}
            onClick={() => void forkAt(thread, user).catch(notifyError)}
          />
        </>
      )}
      {run && (
        <IconButton
          icon="eye"
          label={text.inspect}
          onClick={() => go({ view: "call", thread: thread.id, run, n: null })}
        />
      )}
    </div>
  );
}

async function copyAnswer(turn: Turn): Promise<void> {
  const isCopied = await copyText(answerText(turn));
  notify(isCopied ? words.value.copied : words.value.copyFailed);
}

async function forkAt(thread: OpenThread, message: UserMessage): Promise<void> {
  const copy = await fork(thread, message);
  go({ view: "chat", thread: copy });
  notify(words.value.forked);
  await refreshThreads();
}
