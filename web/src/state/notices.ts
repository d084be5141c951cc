/** Short words at the edge of the page: what went wrong, what was done, and a way to take it back. */

import { signal } from "@preact/signals";

import { ApiError } from "../api/request.ts";

export interface Notice {
  readonly id: number;
  readonly kind: "info" | "error";
  readonly text: string;
  readonly action?: { readonly label: string; readonly act: () => void };
}

export const notices = signal<readonly Notice[]>([]);

const SHOWN_MS = 6_000;
let count = 0;

export function notify(text: string, action?: Notice["action"], milliseconds: number = SHOWN_MS): number {
  return add({ id: ++count, kind: "info", text, ...(action ? { action } : {}) }, milliseconds);
}

/** Say what went wrong, in the server's own words where it has some. */
export function notifyError(error: unknown): number {
  const text = error instanceof ApiError ? error.detail : String(error instanceof Error ? error.message : error);
  return add({ id: ++count, kind: "error", text }, 2 * SHOWN_MS);
}

export function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

function add(notice: Notice, milliseconds: number): number {
  notices.value = [...notices.value.slice(-3), notice];
  setTimeout(() => dismiss(notice.id), milliseconds);
  return notice.id;
}
