/** Message composer: text box, attachments, active skill, and the send and stop buttons. */

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import { stop } from "../../conversation/actions.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { formatBytes } from "../../language/language.ts";
import { FileIcon, kindOfType, serverFilePath } from "../../parts/files.tsx";
import { focusMessageBox, WRITE_ID } from "../../parts/focus.ts";
import { Icon, IconButton } from "../../parts/icon.tsx";
import { findSkill } from "../../state/agents.ts";
import { notifyError } from "../../state/toasts.ts";
import { editMessage, lastEditable, sendMessage } from "../chat/message_actions.ts";
import "./composer.css";
import { type Draft, draftOf, MAX_LENGTH } from "./draft.ts";
import { acceptedTypes, attach, type Upload, type Uploads } from "./uploads.ts";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

/** Length from which the counter appears. */
const WARN_LENGTH = 9_000;

export function Composer({ thread, agent }: Props) {
  const draft = draftOf(thread);
  const limit = agent?.fileInput?.maxFiles ?? null;
  const isTooMany = limit !== null && draft.uploads.list.value.filter((upload) => upload.state !== "failed").length > limit;
  const send = () => {
    if (draft.canSend.value && !isTooMany) void sendDraft(thread, agent, draft);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div class="composer-box">
        <UploadList uploads={draft.uploads} agent={agent} />
        {isTooMany && (
          <p class="composer-error" role="alert">
            {words.value.tooMany(limit)}
          </p>
        )}
        <MessageBox thread={thread} agent={agent} draft={draft} onSend={send} />
        <div class="composer-row">
          {agent?.fileInput && <AttachButton uploads={draft.uploads} agent={agent} />}
          <ActiveSkill thread={thread} agent={agent} draft={draft} />
          <Length draft={draft} />
          <SendOrStop thread={thread} draft={draft} isBlocked={isTooMany} />
        </div>
      </div>
    </form>
  );
}

async function sendDraft(thread: OpenThread, agent: Agent | null, draft: Draft): Promise<void> {
  const text = draft.text.value.trim();
  const files = draft.uploads.ready.value;
  const skill = draft.leavesSkill.value ? "core" : null;
  draft.clear();
  focusMessageBox();
  await sendMessage(thread, agent, { text, files, skill });
}

function Length({ draft }: { draft: Draft }) {
  const length = draft.length.value;
  if (length < WARN_LENGTH) return null;
  const text = words.value;
  const isTooLong = length > MAX_LENGTH;
  return (
    <p class={isTooLong ? "composer-length too-long" : "composer-length"} role="status">
      {text.length(length, MAX_LENGTH)}
      {isTooLong && ` · ${text.tooLong}`}
    </p>
  );
}

/** A run can be stopped, and messages can be queued meanwhile. */
function SendOrStop({ thread, draft, isBlocked }: { thread: OpenThread; draft: Draft; isBlocked: boolean }) {
  const text = words.value;
  const isRunning = thread.isRunning.value;
  return (
    <div class="composer-buttons">
      {isRunning && (
        <button
          type="button"
          class="round stop"
          aria-label={text.stop}
          title={text.stop}
          onClick={() => void stop(thread).catch(notifyError)}
        >
          <Icon name="stop" />
        </button>
      )}
      {(!isRunning || !draft.isEmpty.value) && (
        <button
          type="submit"
          class="primary round"
          aria-label={text.send}
          title={text.send}
          disabled={!draft.canSend.value || isBlocked}
        >
          <Icon name="send" />
        </button>
      )}
    </div>
  );
}

function AttachButton({ uploads, agent }: { uploads: Uploads; agent: Agent }) {
  const picker = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton icon="attach" label={words.value.attach} onClick={() => picker.current?.click()} />
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        aria-label={words.value.attach}
        accept={agent.fileInput ? acceptedTypes(agent.fileInput) : undefined}
        onChange={(event) => {
          attach(uploads, agent, [...(event.currentTarget.files ?? [])]);
          // Allow the user to pick the same file again.
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}

function ActiveSkill({ thread, agent, draft }: Props & { draft: Draft }) {
  const name = thread.details.value?.skill;
  if (!name || name === "core") return null;
  const text = words.value;
  const title = findSkill(agent, name)?.title ?? name;
  if (draft.leavesSkill.value) {
    return (
      <p class="skill leaving" role="status">
        <span>{text.leaving(title)}</span>
        <button
          type="button"
          class="plain small"
          onClick={() => {
            draft.leavesSkill.value = false;
          }}
        >
          {text.stay}
        </button>
      </p>
    );
  }
  return (
    <p class="skill">
      <Icon name="sparkle" />
      <span>{text.skill(title)}</span>
      <IconButton
        icon="close"
        label={text.leave(title)}
        onClick={() => {
          draft.leavesSkill.value = true;
        }}
      />
    </p>
  );
}

function MessageBox({ thread, agent, draft, onSend }: Props & { draft: Draft; onSend: () => void }) {
  const box = useRef<HTMLTextAreaElement>(null);
  const text = words.value;

  useLayoutEffect(() => autoGrow(box.current), [draft.text.value]);
  useEffect(() => {
    // On a phone, the keyboard would cover the suggestions.
    if (thread.isNew.peek() && matchMedia("(pointer: fine)").matches) box.current?.focus();
  }, []);

  const onKeyDown = (event: KeyboardEvent) => {
    // 229 marks input method keys, also where `isComposing` is set too late.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      onSend();
    }
    if (event.key === "ArrowUp" && draft.text.value === "" && !event.shiftKey) {
      const last = lastEditable(thread);
      if (!last) return;
      event.preventDefault();
      editMessage(thread, last).catch(notifyError);
    }
  };

  return (
    <textarea
      ref={box}
      id={WRITE_ID}
      rows={1}
      aria-label={text.label}
      placeholder={thread.isRunning.value ? text.placeholderBusy : text.placeholder}
      enterkeyhint="send"
      value={draft.text.value}
      onInput={(event) => {
        draft.text.value = event.currentTarget.value;
      }}
      onKeyDown={onKeyDown}
      onPaste={(event) => {
        const files = [...(event.clipboardData?.files ?? [])];
        if (!files.length) return;
        event.preventDefault();
        attach(draft.uploads, agent, files);
      }}
    />
  );
}

/** Fit the height to the text. CSS sets the limit. */
function autoGrow(box: HTMLTextAreaElement | null): void {
  if (!box || CSS.supports("field-sizing", "content")) return;
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}

function UploadList({ uploads, agent }: { uploads: Uploads; agent: Agent | null }) {
  const list = uploads.list.value;
  if (!list.length) return null;
  return (
    <ul class="uploads" aria-label={words.value.attachments}>
      {list.map((upload) => (
        <UploadChip
          key={upload.key}
          upload={upload}
          onRemove={() => uploads.remove(upload.key)}
          onRetry={() => uploads.retry(upload.key, agent?.name ?? null)}
        />
      ))}
    </ul>
  );
}

interface ChipProps {
  readonly upload: Upload;
  readonly onRemove: () => void;
  readonly onRetry: () => void;
}

function UploadChip({ upload, onRemove, onRetry }: ChipProps) {
  const text = words.value;
  const { name, state } = upload;
  return (
    <li class={`upload ${state}`}>
      <Picture upload={upload} />
      <div class="file-words">
        <span class="file-name">{name}</span>
        <About upload={upload} />
      </div>
      {state === "failed" && <IconButton icon="retry" label={text.retry(name)} onClick={onRetry} />}
      <IconButton
        icon="close"
        label={state === "uploading" ? text.cancel(name) : text.remove(name)}
        onClick={onRemove}
      />
    </li>
  );
}

function Picture({ upload: { preview, file, mimeType } }: Pick<ChipProps, "upload">) {
  const kind = file?.kind ?? kindOfType(mimeType);
  const source = preview ?? (file?.kind === "image" ? serverFilePath(file.url) : null);
  return source ? <img src={source} alt="" width={40} height={40} /> : <FileIcon kind={kind} />;
}

function About({ upload: { name, size, state, progress, problem } }: Pick<ChipProps, "upload">) {
  const text = words.value;
  const percent = Math.round(progress * 100);
  switch (state) {
    case "uploading":
      return (
        <div
          class="upload-bar"
          role="progressbar"
          aria-label={text.uploading(name)}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={percent}
        >
          <div style={{ width: `${percent}%` }} />
        </div>
      );
    case "failed":
      return (
        <span class="upload-problem" role="alert">
          {problem || text.offline}
        </span>
      );
    case "ready":
      return size ? <span class="file-about">{formatBytes(size)}</span> : null;
  }
}
