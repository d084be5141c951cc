/** What a person said, with its files, and how far it got on its way. */

import type { Agent } from "../../api/routes.ts";
import type { UserMessage } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { Icon } from "../../parts/icon.tsx";
import { IconButton } from "../../parts/icon_button.tsx";
import { notifyError } from "../../state/notices.ts";
import { edit } from "./edit.ts";
import { FileChip } from "./file_chip.tsx";
import { problemWords } from "./problem_words.ts";
import { speakAgain } from "./speak.ts";
import { words } from "./words.ts";

interface Props {
  readonly message: UserMessage;
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

export function UserMessageView({ message, thread, agent }: Props) {
  const text = words.value;
  return (
    <div class="said">
      <div class="said-row">
        <div class="bubble">
          <h2 class="hidden-but-read">{text.you}</h2>
          {message.text && <p class="plain-text">{message.text}</p>}
          {message.files.length > 0 && (
            <ul class="said-files">
              {message.files.map((file) => (
                <FileChip key={file.url} file={file} />
              ))}
            </ul>
          )}
        </div>
        {message.status === "said" && <EditButton message={message} thread={thread} />}
      </div>
      <Status message={message} thread={thread} agent={agent} />
    </div>
  );
}

function EditButton({ message, thread }: Pick<Props, "message" | "thread">) {
  const text = words.value;
  return (
    <div class="actions" role="group" aria-label={text.messageActions}>
      <IconButton
        icon="edit"
        label={text.edit}
        disabled={thread.isRunning.value}
        onClick={() => void edit(thread, message).catch(notifyError)}
      />
    </div>
  );
}

function Status({ message, thread, agent }: Props) {
  const text = words.value;
  const problem = thread.problem.value;
  switch (message.status) {
    case "said":
      return null;
    case "unsent":
      return (
        <div class="unsent small">
          <p role="alert">
            <Icon name="warning" /> {text.status.unsent}
            {problem && `: ${problemWords(problem.code, problem.message)}`}
          </p>
          <button type="button" onClick={() => void speakAgain(thread, agent, message)}>
            <Icon name="retry" /> {text.sendAgain}
          </button>
          <button type="button" onClick={() => void edit(thread, message)}>
            <Icon name="edit" /> {text.edit}
          </button>
        </div>
      );
    default:
      return (
        <p class="said-status soft small">
          <Icon name="clock" /> {text.status[message.status]}
        </p>
      );
  }
}
