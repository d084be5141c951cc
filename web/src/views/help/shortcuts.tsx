/** Global keyboard shortcuts and the dialog that lists them. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { stop } from "../../conversation/actions.ts";
import { runOf, turnsOf } from "../../conversation/messages.ts";
import { bilingual } from "../../language/language.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { currentThread, startThread } from "../../state/current_thread.ts";
import { isShortcut, SEARCH_ID, WRITE_ID } from "../../parts/focus.ts";
import { go } from "../../state/route.ts";
import { notifyError } from "../../state/toasts.ts";
import "./shortcuts.css";

const isShown = signal(false);

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
        {rows.map(([keys, label]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{label}</dd>
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
  if (event.key === "Escape") stopRun(event);
  const act = KEYS[event.key];
  if (!act || !isShortcut(event)) return;
  event.preventDefault();
  act();
}

/** Escape works in text fields, too. */
function stopRun(event: KeyboardEvent): void {
  if (event.isComposing || document.querySelector("dialog[open]")) return;
  if (currentThread.value.isRunning.value) stop(currentThread.value).catch(notifyError);
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
  const last = turnsOf(currentThread.value.messages.value).at(-1);
  const run = last ? runOf(last) : null;
  if (run) go({ view: "call", thread: currentThread.value.id, run, n: null });
}

export const words = bilingual(
  {
    title: "Keyboard shortcuts",
    close: "Close",
    send: "Send message",
    newLine: "New line",
    newThread: "New conversation",
    search: "Search conversations",
    write: "Focus the message box",
    stop: "Stop generating",
    editLast: "Edit the last message (in an empty message box)",
    inspect: "View model input of the last response",
    calls: "Previous or next call (in model input)",
    help: "Show keyboard shortcuts",
  },
  {
    title: "键盘快捷键",
    close: "关闭",
    send: "发送消息",
    newLine: "换行",
    newThread: "新对话",
    search: "搜索对话",
    write: "聚焦输入框",
    stop: "停止生成",
    editLast: "编辑上一条消息（输入框为空时）",
    inspect: "查看上一个回答的模型输入",
    calls: "上一次或下一次调用（在模型输入中）",
    help: "显示键盘快捷键",
  },
);
