/** A conversation: its bar, what was said, what waits, and where one writes. */

import { useComputed } from "@preact/signals";

import type { Agent } from "../../api/routes.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { findAgent, newThreadAgent } from "../../state/agents.ts";
import { startThread } from "../../state/current.ts";
import { Composer } from "../composer/composer.tsx";
import { DropArea } from "../composer/drop_area.tsx";
import { Bar } from "./bar.tsx";
import "./chat.css";
import { EmptyThread } from "./empty.tsx";
import { Log } from "./log.tsx";
import { PutBack } from "./put_back.tsx";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly onOpenList: () => void;
}

export function Chat({ thread, onOpenList }: Props) {
  const agent = findAgent(thread.details.value?.agent) ?? newThreadAgent.value;
  return (
    <DropArea thread={thread} agent={agent}>
      <Bar thread={thread} agent={agent} onOpenList={onOpenList} />
      <Body thread={thread} agent={agent} />
      <PutBack />
    </DropArea>
  );
}

function Body({ thread, agent }: { thread: OpenThread; agent: Agent | null }) {
  const isEmpty = useComputed(() => thread.messages.value.length === 0);
  const text = words.value;
  // What was read stays in view when it cannot be read again.
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
            {text.loadAgain}
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
