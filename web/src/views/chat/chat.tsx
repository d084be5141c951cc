/** A conversation: title bar, log, interrupts and composer. */

import { useComputed, useSignalEffect } from "@preact/signals";

import { type Agent, restoreFiles } from "../../api/routes.ts";
import { compact } from "../../conversation/actions.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { bilingual } from "../../language/language.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { focusMessageBox } from "../../parts/focus.ts";
import { Icon, IconButton } from "../../parts/icon.tsx";
import { findAgent, newThreadAgent, selectedAgent, visibleAgents } from "../../state/agents.ts";
import { startThread } from "../../state/current_thread.ts";
import { go } from "../../state/route.ts";
import { notify, notifyError } from "../../state/toasts.ts";
import { Composer } from "../composer/composer.tsx";
import { DropArea } from "../composer/drop_area.tsx";
import "./chat.css";
import { Log } from "./log.tsx";
import { changedFiles, type ChangedFiles, sendMessage, undoEdit } from "./message_actions.ts";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly onOpenList: () => void;
}

export function Chat({ thread, onOpenList }: Props) {
  const agent = findAgent(thread.details.value?.agent) ?? newThreadAgent.value;
  return (
    <DropArea thread={thread} agent={agent}>
      <ChatBar thread={thread} agent={agent} onOpenList={onOpenList} />
      <Body thread={thread} agent={agent} />
      <RestoreDialog />
    </DropArea>
  );
}

function Body({ thread, agent }: { thread: OpenThread; agent: Agent | null }) {
  const isEmpty = useComputed(() => thread.messages.value.length === 0);
  const text = words.value;
  // A failed reload keeps the messages that are already here.
  const phase = isEmpty.value ? thread.phase.value : "ready";
  switch (phase) {
    case "loading":
      return (
        <p class="chat-state soft" role="status">
          <span class="dots" aria-hidden="true" /> {text.loading}
        </p>
      );
    case "missing":
      return (
        <div class="chat-state">
          <p>{text.missing}</p>
          <p class="soft small">{text.missingHelp}</p>
          <button type="button" class="primary" onClick={startThread}>
            {text.startNew}
          </button>
        </div>
      );
    case "failed":
      return (
        <div class="chat-state">
          <p class="problem" role="alert">
            {thread.problem.value?.message}
          </p>
          <button type="button" onClick={() => void thread.reload()}>
            {text.reload}
          </button>
        </div>
      );
    case "ready":
      return (
        <>
          {isEmpty.value ? <EmptyThread thread={thread} agent={agent} /> : <Log thread={thread} agent={agent} />}
          <Composer thread={thread} agent={agent} />
        </>
      );
  }
}

function ChatBar({ thread, agent, onOpenList }: Props & { agent: Agent | null }) {
  const text = words.value;
  const details = thread.details.value;
  const isBusy = thread.isRunning.value;
  useSignalEffect(() => {
    if (thread.finish.value === "nothing_to_compact") notify(words.peek().nothingToCompact);
  });
  return (
    <header class="page-bar">
      <IconButton icon="menu" label={text.openList} class="only-narrow" onClick={onOpenList} />
      <h1>{details?.title || text.newConversation}</h1>
      {details && agent && <span class="badge agent-name">{agent.name}</span>}
      {details?.canUndo && (
        <IconButton
          icon="undo"
          label={text.undo}
          disabled={isBusy}
          onClick={() => void undoEdit(thread).catch(notifyError)}
        />
      )}
      {details && (
        <IconButton
          icon="compact"
          label={text.compact}
          disabled={isBusy}
          onClick={() => void compact(thread).catch(notifyError)}
        />
      )}
      <IconButton icon="eye" label={text.preview} onClick={() => go({ view: "preview", thread: thread.isNew.value ? null : thread.id })} />
    </header>
  );
}

function RestoreDialog() {
  const rollback = changedFiles.value;
  if (!rollback) return null;
  const text = words.value;
  return (
    <Dialog title={text.restoreTitle} onClose={close}>
      <div class="restore-files">
        <p>{text.restoreHelp}</p>
        <ul>
          {rollback.files.map((file) => (
            <li key={file.path}>
              <code>{file.path}</code> <span class="soft">({text.changes[file.change]})</span>
            </li>
          ))}
        </ul>
        <div class="restore-files-choices">
          <button type="button" onClick={close}>
            {text.keepFiles}
          </button>
          <button type="button" class="primary" onClick={() => void restore(rollback).catch(notifyError)}>
            {text.restore}
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function close(): void {
  changedFiles.value = null;
  focusMessageBox();
}

async function restore({ thread, messageId }: ChangedFiles): Promise<void> {
  close();
  const { restored, left } = await restoreFiles(thread.id, messageId);
  notify(words.value.filesRestored(restored.length));
  if (left.length) notify(words.value.restoreFailed(left.map(String).join(", ")));
}

function EmptyThread({ thread, agent }: { thread: OpenThread; agent: Agent | null }) {
  const text = emptyWords.value;
  return (
    <div class="empty-scroll">
      <div class="empty">
        <h2>{text.greeting}</h2>
        <p class="soft">{text.about}</p>
        {thread.isNew.value && visibleAgents.value.length > 1 && <AgentPicker agent={agent} />}
        {agent && agent.starters.length > 0 && <Starters thread={thread} agent={agent} />}
        <ul class="empty-hints soft small">
          {agent?.fileInput && (
            <li>
              <Icon name="attach" /> {text.filesHint}
            </li>
          )}
          <li>
            <Icon name="eye" /> {text.inspectHint}
          </li>
          <li>
            <Icon name="keyboard" /> {text.keysHint}
          </li>
        </ul>
      </div>
    </div>
  );
}

function AgentPicker({ agent }: { agent: Agent | null }) {
  return (
    <fieldset class="agent-picker">
      <legend>{emptyWords.value.agent}</legend>
      {visibleAgents.value.map((option) => (
        <label key={option.name} class="agent-choice">
          <input
            type="radio"
            name="agent"
            value={option.name}
            checked={option.name === agent?.name}
            onChange={() => {
              selectedAgent.value = option.name;
            }}
          />
          <span>
            <strong>{option.name}</strong>
            <span class="soft small">{option.description}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function Starters({ thread, agent }: { thread: OpenThread; agent: Agent }) {
  return (
    <section class="starters" aria-label={emptyWords.value.starters}>
      <h3 class="soft small">{emptyWords.value.starters}</h3>
      {agent.starters.map((starter) => (
        <button key={starter} type="button" onClick={() => void sendMessage(thread, agent, { text: starter, files: [] })}>
          <span>{starter}</span>
          <Icon name="send" />
        </button>
      ))}
    </section>
  );
}

const emptyWords = bilingual(
  {
    greeting: "How can I help?",
    about: "Send a message, or start with a suggestion.",
    agent: "Agent",
    starters: "Try asking",
    filesHint: "Drop or paste files to attach them.",
    inspectHint: "Select the eye below a response to see the exact model input.",
    keysHint: "Press ? for keyboard shortcuts.",
  },
  {
    greeting: "有什么可以帮你？",
    about: "发送消息，或从下面的建议开始。",
    agent: "智能体",
    starters: "试试这样问",
    filesHint: "拖放或粘贴文件即可添加。",
    inspectHint: "点击回答下方的眼睛图标，查看完整的模型输入。",
    keysHint: "按 ? 查看键盘快捷键。",
  },
);
