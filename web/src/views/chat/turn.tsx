/** A turn: the user message and its answers. It renders again only when something in it changes. */

import type { Progress } from "../../api/agui.ts";
import type { Agent } from "../../api/routes.ts";
import { fork, tryAgain } from "../../conversation/actions.ts";
import {
  answerText,
  type AssistantMessage,
  type AttachedFile,
  displayText,
  type Message,
  type NoteMessage,
  type ReasoningMessage,
  runOf,
  type Turn,
  type UserMessage,
} from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { formatNumber } from "../../language/language.ts";
import { copyText, copyWords } from "../../parts/clipboard.tsx";
import { FileIcon, serverFilePath } from "../../parts/files.tsx";
import { Icon, IconButton } from "../../parts/icon.tsx";
import { Markdown } from "../../parts/markdown/markdown.tsx";
import { memo } from "../../parts/memo.ts";
import { go } from "../../state/route.ts";
import { refreshThreads } from "../../state/threads.ts";
import { notify, notifyError } from "../../state/toasts.ts";
import { ToolCard } from "../cards/tool_card.tsx";
import { UiCard } from "../cards/ui_card.tsx";
import { editMessage, resendMessage, sendMessage } from "./message_actions.ts";
import { problemText, words } from "./words.ts";

interface Context {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

interface Props extends Context {
  readonly turn: Turn;
  readonly isLast: boolean;
  /** True while a run works on this turn. */
  readonly isActive: boolean;
}

export const TurnView = memo(({ turn, thread, agent, isLast, isActive }: Props) => (
  <section class={isLast ? "turn last" : "turn"} data-turn={turn.key}>
    {turn.user && <UserMessageView message={turn.user} thread={thread} agent={agent} />}
    {turn.answers.map((message) => (
      <Part key={message.id} message={message} thread={thread} agent={agent} />
    ))}
    {isActive && !isWriting(turn) && (
      <p class="working soft small">
        <span class="dots" aria-hidden="true" /> {words.value.working}
      </p>
    )}
    {!isActive && <AnswerActions turn={turn} thread={thread} agent={agent} />}
  </section>
));

function Part({ message, thread, agent }: Context & { message: Turn["answers"][number] }) {
  switch (message.role) {
    case "assistant":
      return <Answer message={message} thread={thread} agent={agent} />;
    case "reasoning":
      return <Reasoning message={message} />;
    case "note":
      return <Note message={message} />;
  }
}

/** Return true if the user can see the end of the turn grow. */
function isWriting(turn: Turn): boolean {
  const last: Message | undefined = turn.answers.at(-1);
  if (last?.role === "reasoning") return last.isStreaming;
  if (last?.role === "note") return last.kind === "recto.progress";
  return last?.role === "assistant" && last.isStreaming && last.text !== "" && !/^\s*\{/.test(last.text);
}

function AnswerActions({ turn, thread, agent }: Context & { turn: Turn }) {
  const text = words.value;
  const { user } = turn;
  const run = runOf(turn);
  const isBusy = thread.isRunning.value;
  if (!turn.answers.length && user?.status !== "sent") return null;
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
  notify(isCopied ? copyWords.value.copied : copyWords.value.failed);
}

async function forkAt(thread: OpenThread, message: UserMessage): Promise<void> {
  const copy = await fork(thread, message);
  go({ view: "chat", thread: copy });
  notify(words.value.forked);
  await refreshThreads();
}

export const Answer = memo(({ message, thread, agent }: Context & { message: AssistantMessage }) => {
  const text = displayText(message);
  return (
    <div class="answer">
      {text && (
        <>
          <h2 class="visually-hidden">{words.value.answer}</h2>
          <Markdown text={text} isStreaming={message.isStreaming} />
        </>
      )}
      {message.calls.map((call) => (
        <ToolCard key={call.id} call={call} agent={agent} />
      ))}
      {message.ui && (
        <UiCard schema={message.ui} onMessage={(text) => void sendMessage(thread, agent, { text, files: [] })} />
      )}
      <End status={message.status} />
    </div>
  );
});

/** Reason why an answer is incomplete. */
function End({ status }: { status: string | null }) {
  const reason = Object.entries(words.value.ends).find(([name]) => name === status)?.[1];
  if (!reason) return null;
  return (
    <p class="answer-end small">
      <Icon name="warning" /> {reason}
    </p>
  );
}

export function Reasoning({ message }: { message: ReasoningMessage }) {
  const text = words.value;
  return (
    <details class="reasoning">
      <summary>{message.isStreaming ? text.thinking : text.reasoning}</summary>
      <p>{message.text}</p>
    </details>
  );
}

export function Note({ message }: { message: NoteMessage }) {
  switch (message.kind) {
    case "recto.attachments":
      return <UnusableFiles notes={message.content["notes"]} />;
    case "recto.progress":
      return <ProgressLine progress={message.content as unknown as Progress} />;
    default:
      return null;
  }
}

function UnusableFiles({ notes }: { notes: unknown }) {
  const lines = Array.isArray(notes) ? notes.filter((note) => typeof note === "string") : [];
  if (!lines.length) return null;
  return (
    <div class="note">
      <Icon name="warning" />
      <div>
        <p>{words.value.unusableFiles}</p>
        <ul>
          {lines.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function ProgressLine({ progress }: { progress: Progress }) {
  if (progress.status === "ended") return null;
  const { label, done, total, unit } = progress;
  const amount = total === undefined ? formatNumber(done) : `${formatNumber(done)} / ${formatNumber(total)}`;
  return (
    <div class="progress-line small soft">
      <span>
        {label} · {amount} {unit}
      </span>
      <progress aria-label={label} {...(total === undefined ? {} : { value: done, max: total })} />
    </div>
  );
}

function UserMessageView({ message, thread, agent }: Context & { message: UserMessage }) {
  const text = words.value;
  return (
    <div class="user-message">
      <div class="user-message-row">
        <div class="bubble">
          <h2 class="visually-hidden">{text.you}</h2>
          {message.text && <p class="plain-text">{message.text}</p>}
          {message.files.length > 0 && (
            <ul class="user-message-files">
              {message.files.map((file) => (
                <FileChip key={file.url} file={file} />
              ))}
            </ul>
          )}
        </div>
        {message.status === "sent" && <EditButton message={message} thread={thread} />}
      </div>
      <Status message={message} thread={thread} agent={agent} />
    </div>
  );
}

function EditButton({ message, thread }: { message: UserMessage; thread: OpenThread }) {
  const text = words.value;
  return (
    <div class="actions" role="group" aria-label={text.messageActions}>
      <IconButton
        icon="edit"
        label={text.edit}
        disabled={thread.isRunning.value}
        onClick={() => void editMessage(thread, message).catch(notifyError)}
      />
    </div>
  );
}

function Status({ message, thread, agent }: Context & { message: UserMessage }) {
  const text = words.value;
  const problem = thread.problem.value;
  switch (message.status) {
    case "sent":
      return null;
    case "unsent":
      return (
        <div class="unsent small">
          <p role="alert">
            <Icon name="warning" /> {text.status.unsent}
            {problem && `: ${problemText(problem.code, problem.message)}`}
          </p>
          <button type="button" onClick={() => void resendMessage(thread, agent, message)}>
            <Icon name="retry" /> {text.resend}
          </button>
          <button type="button" onClick={() => void editMessage(thread, message)}>
            <Icon name="edit" /> {text.edit}
          </button>
        </div>
      );
    default:
      return (
        <p class="user-message-status soft small">
          <Icon name="clock" /> {text.status[message.status]}
        </p>
      );
  }
}

function FileChip({ file }: { file: AttachedFile }) {
  const text = words.value;
  const path = serverFilePath(file.url);
  const kind = text.kinds[file.kind];
  const title = file.id ? text.fileId(file.id) : kind;
  const inner = (
    <>
      {file.kind === "image" && path ? (
        <img src={path} alt="" loading="lazy" width={56} height={56} />
      ) : (
        <FileIcon kind={file.kind} />
      )}
      <span class="file-words">
        <span class="file-name">{file.name || kind}</span>
        <span class="file-about">
          {kind}
          {file.id && ` · ${file.id}`}
        </span>
      </span>
    </>
  );
  return (
    <li class="file-chip" title={title}>
      {path ? (
        <a href={path} target="_blank" rel="noopener noreferrer">
          {inner}
        </a>
      ) : (
        <span>{inner}</span>
      )}
    </li>
  );
}
