/** The keyboard: what works everywhere on the page, and the list of it under `?`. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { stop } from "../../conversation/actions.ts";
import { runOf, turnsOf } from "../../conversation/messages.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { current, startThread } from "../../state/current.ts";
import { notifyError } from "../../state/notices.ts";
import { go } from "../../state/route.ts";
import "./shortcuts.css";
import { words } from "./words.ts";

const isShown = signal(false);

/** What others give the focus to: each has one of these ids. */
export const WRITE_ID = "write";
export const SEARCH_ID = "search";

export function showShortcuts(): void {
  isShown.value = true;
}

export function Shortcuts() {
  useEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (!isShown.value) return null;
  const text = words.value;
  const rows: readonly (readonly [string, string])[] = [
    ["Enter", text.send],
    ["Shift Enter", text.newLine],
    ["↑", text.editLast],
    ["Esc", text.stop],
    ["n", text.newThread],
    ["/", text.search],
    ["w", text.write],
    ["i", text.inspect],
    ["[ ]", text.calls],
    ["?", text.help],
  ];
  return (
    <Dialog title={text.title} onClose={hide}>
      <dl class="shortcuts">
        {rows.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={hide}>
        {text.close}
      </button>
    </Dialog>
  );
}

function hide(): void {
  isShown.value = false;
}

function onKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) {
    return;
  }
  if (event.key === "Escape") {
    if (current.value.isRunning.value) stop(current.value).catch(notifyError);
    return;
  }
  if (isWriting(event.target)) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

const KEYS: Readonly<Record<string, () => void>> = {
  "?": showShortcuts,
  "/": () => document.getElementById(SEARCH_ID)?.focus(),
  w: () => document.getElementById(WRITE_ID)?.focus(),
  n: () => {
    startThread();
    document.getElementById(WRITE_ID)?.focus();
  },
  i: inspectLast,
};

function inspectLast(): void {
  const last = turnsOf(current.value.messages.value).at(-1);
  const run = last ? runOf(last) : null;
  if (run) go({ view: "call", thread: current.value.id, run, n: null });
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
