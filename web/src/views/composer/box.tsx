/** The text box: Enter sends, it grows with its words, files can be pasted, and ↑ edits the last message. */

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { notifyError } from "../../state/notices.ts";
import { edit, lastEditable } from "../chat/edit.ts";
import { WRITE_ID } from "../help/shortcuts.tsx";
import { attach } from "./attach.ts";
import type { Draft } from "./draft.ts";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
  readonly draft: Draft;
  readonly onSend: () => void;
}

export function Box({ thread, agent, draft, onSend }: Props) {
  const box = useRef<HTMLTextAreaElement>(null);
  const text = words.value;

  useLayoutEffect(() => grow(box.current), [draft.text.value]);
  useEffect(() => {
    // On a phone the keyboard would cover what there is to begin with.
    if (thread.isNew.peek() && matchMedia("(pointer: fine)").matches) box.current?.focus();
  }, []);

  const onKeyDown = (event: KeyboardEvent) => {
    // 229: a key that belongs to an input method, also where `isComposing` is told too late.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      onSend();
    }
    if (event.key === "ArrowUp" && draft.text.value === "" && !event.shiftKey) {
      const last = lastEditable(thread);
      if (!last) return;
      event.preventDefault();
      edit(thread, last).catch(notifyError);
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

/** As high as its words; the style sheet has the limit. */
function grow(box: HTMLTextAreaElement | null): void {
  if (!box || CSS.supports("field-sizing", "content")) return;
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight + 2}px`;
}
