/** Below the conversation: a summary that is written, a connection that is lost, and what went wrong with its way out. */

import type { Agent } from "../../api/routes.ts";
import { tryAgain } from "../../conversation/actions.ts";
import type { OpenThread, Problem } from "../../conversation/open_thread.ts";
import { Icon } from "../../parts/icon.tsx";
import { notifyError } from "../../state/notices.ts";
import { lastEditable } from "./edit.ts";
import { problemWords } from "./problem_words.ts";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

export function RunState({ thread, agent }: Props) {
  const text = words.value;
  const problem = thread.problem.value;
  return (
    <>
      {thread.isCompacting.value && (
        <p class="run-state soft" role="status">
          <span class="dots" aria-hidden="true" /> {text.compacting}
        </p>
      )}
      <p class="run-state connection" role="status">
        {thread.connection.value === "lost" && (
          <>
            <Icon name="warning" /> {text.reconnecting}
          </>
        )}
      </p>
      {problem && !isToldAtMessage(thread, problem) && <ProblemBox thread={thread} agent={agent} problem={problem} />}
    </>
  );
}

function ProblemBox({ thread, agent, problem }: Props & { readonly problem: Problem }) {
  const text = words.value;
  const reload = problem.code === "lost" || problem.code === "load";
  const message = lastEditable(thread);
  return (
    <div class="problem run-problem" role="alert">
      <p>{problemWords(problem.code, problem.message)}</p>
      {reload && (
        <button type="button" onClick={() => void loadAgain(thread)}>
          {text.loadAgain}
        </button>
      )}
      {!reload && message && problem.code !== "refused" && (
        <button type="button" onClick={() => void tryAgain(thread, agent, message).catch(notifyError)}>
          <Icon name="retry" /> {text.tryAgain}
        </button>
      )}
    </div>
  );
}

async function loadAgain(thread: OpenThread): Promise<void> {
  thread.problem.value = null;
  await thread.reload();
}

/** A message that was refused has the reason beside it. */
function isToldAtMessage(thread: OpenThread, problem: Problem): boolean {
  if (problem.code !== "refused" && problem.code !== "unreached") return false;
  return thread.messages.value.some((message) => message.role === "user" && message.status === "unsent");
}
