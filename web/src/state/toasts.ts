/** Toasts: short messages with an optional action. */

import { signal } from "@preact/signals";

import { ApiError } from "../api/request.ts";

interface Toast {
  readonly id: number;
  readonly kind: "info" | "error";
  readonly text: string;
  readonly action?: { readonly label: string; readonly act: () => void };
}

export const toasts = signal<readonly Toast[]>([]);

const VISIBLE_MS = 6_000;
let nextId = 0;

export function notify(text: string, action?: Toast["action"], milliseconds: number = VISIBLE_MS): number {
  return add({ id: ++nextId, kind: "info", text, ...(action ? { action } : {}) }, milliseconds);
}

/** Show an error. Errors of the server keep its own message. */
export function notifyError(error: unknown): number {
  const text = error instanceof ApiError ? error.detail : String(error instanceof Error ? error.message : error);
  return add({ id: ++nextId, kind: "error", text }, 2 * VISIBLE_MS);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

function add(toast: Toast, milliseconds: number): number {
  toasts.value = [...toasts.value.slice(-3), toast];
  setTimeout(() => dismiss(toast.id), milliseconds);
  return toast.id;
}
