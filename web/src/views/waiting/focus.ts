/** Brings the focus to what waits, and never away from somebody who writes. */

import { WRITE_ID } from "../help/shortcuts.tsx";

const JUST_MS = 1_000;
let lastTyped = -Infinity;

addEventListener(
  "keydown",
  (event) => {
    if (event.key.length === 1 && isBox(event.target)) lastTyped = event.timeStamp;
  },
  true,
);

/** True where it was brought there. */
export function bringFocus(element: HTMLElement | null): boolean {
  if (!element || isWriting(document.activeElement) || document.querySelector("dialog[open]")) return false;
  element.focus();
  return true;
}

/** What was answered is gone, and the focus with it: on with writing. Not on a phone, where a keyboard would come up. */
export function goOnWriting(): void {
  requestAnimationFrame(() => {
    const isLost = document.activeElement === null || document.activeElement === document.body;
    if (isLost && !matchMedia("(pointer: coarse)").matches) document.getElementById(WRITE_ID)?.focus();
  });
}

function isWriting(active: Element | null): boolean {
  if (!isBox(active)) return false;
  return active.id !== WRITE_ID || active.value !== "" || performance.now() - lastTyped < JUST_MS;
}

function isBox(target: EventTarget | null): target is HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement {
  return (
    target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
  );
}
