/** The bar of a conversation: its title, who answers, and what is done with it as a whole. */

import { useSignalEffect } from "@preact/signals";

import type { Agent } from "../../api/routes.ts";
import { compact } from "../../conversation/actions.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { IconButton } from "../../parts/icon_button.tsx";
import { notify, notifyError } from "../../state/notices.ts";
import { go } from "../../state/route.ts";
import { undoEdit } from "./edit.ts";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
  readonly onOpenList: () => void;
}

export function Bar({ thread, agent, onOpenList }: Props) {
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
