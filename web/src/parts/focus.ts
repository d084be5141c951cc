/** Keyboard focus. The page never takes the focus from a user who is typing. */

/** Element ids that shortcuts focus. */
export const WRITE_ID = "write";
export const SEARCH_ID = "search";

const RECENT_MS = 1_000;
let lastTyped = -Infinity;

addEventListener(
  "keydown",
  (event) => {
    if (event.key.length === 1 && isTextField(event.target)) lastTyped = event.timeStamp;
  },
  true,
);

/** Focus the message box after the next frame. */
export function focusMessageBox(): void {
  requestAnimationFrame(() => document.getElementById(WRITE_ID)?.focus());
}

/** Focus the element unless the user is typing or a dialog is open. Return true if it got the focus. */
export function focusIfIdle(element: HTMLElement | null): boolean {
  if (!element || isTyping(document.activeElement) || document.querySelector("dialog[open]")) return false;
  element.focus();
  return true;
}

/** Return the focus to the message box after a card is gone, except on phones, where a keyboard would open. */
export function restoreFocus(): void {
  requestAnimationFrame(() => {
    const isLost = document.activeElement === null || document.activeElement === document.body;
    if (isLost && !matchMedia("(pointer: coarse)").matches) document.getElementById(WRITE_ID)?.focus();
  });
}

/** Return true if a key may trigger a shortcut: no modifier, no text field, no open dialog. */
export function isShortcut(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false;
  return !isTextField(event.target) && !document.querySelector("dialog[open]");
}

function isTyping(active: Element | null): boolean {
  if (!isTextField(active)) return false;
  return active.id !== WRITE_ID || active.value !== "" || performance.now() - lastTyped < RECENT_MS;
}

function isTextField(target: EventTarget | null): target is HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement {
  return (
    target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
  );
}
