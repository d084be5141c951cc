/** One conversation of the list: opened, renamed where it stands, deleted with a moment to take it back. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { ThreadRow } from "../../api/routes.ts";
import { IconButton } from "../../parts/icon_button.tsx";
import { current, startThread } from "../../state/current.ts";
import { notify } from "../../state/notices.ts";
import { go, linkTo } from "../../state/route.ts";
import { DELETE_MS, remove, rename } from "../../state/threads.ts";
import { words } from "./words.ts";

export function ThreadItem({ row, onChosen }: { row: ThreadRow; onChosen: () => void }) {
  const isRenaming = useSignal(false);
  const text = words.value;
  const title = row.title ?? text.untitled;
  const isShown = current.value.id === row.id;
  if (isRenaming.value) {
    return (
      <li>
        <TitleForm
          title={title}
          onEnd={(given) => {
            isRenaming.value = false;
            if (given && given !== title) void rename(row.id, given);
          }}
        />
      </li>
    );
  }
  return (
    <li class={isShown ? "shown" : ""}>
      <a
        href={linkTo({ view: "chat", thread: row.id })}
        title={title}
        {...(isShown ? { "aria-current": "page" } : {})}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          go({ view: "chat", thread: row.id });
          onChosen();
        }}
      >
        {row.activeRun && <span class="at-work" role="img" aria-label={text.working} />}
        <span class="thread-title">{title}</span>
      </a>
      <span class="thread-actions">
        <IconButton
          icon="edit"
          label={`${text.rename}: ${title}`}
          onClick={() => {
            isRenaming.value = true;
          }}
        />
        <IconButton icon="trash" label={`${text.remove}: ${title}`} onClick={() => removeWithUndo(row.id, title)} />
      </span>
    </li>
  );
}

function removeWithUndo(id: string, title: string): void {
  const wasShown = current.value.id === id;
  const takeBack = remove(id);
  if (wasShown) startThread();
  const act = () => {
    takeBack();
    if (wasShown) go({ view: "chat", thread: id });
  };
  notify(words.value.deleted(title), { label: words.value.undo, act }, DELETE_MS);
}

function TitleForm({ title, onEnd }: { title: string; onEnd: (title: string | null) => void }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.select(), []);
  return (
    <form
      class="title-form"
      onSubmit={(event) => {
        event.preventDefault();
        onEnd(input.current?.value.trim() || null);
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        onEnd(null);
      }}
    >
      <input ref={input} aria-label={words.value.title} defaultValue={title} maxLength={200} required />
      <IconButton icon="check" label={words.value.save} onClick={() => onEnd(input.current?.value.trim() || null)} />
    </form>
  );
}
