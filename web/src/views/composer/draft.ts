/** Unsent message of a thread. Its text survives a reload, its files do not. */

import { batch, computed, effect, signal } from "@preact/signals";

import type { AttachedFile } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { Uploads } from "./uploads.ts";

/** Server limit in characters. */
export const MAX_LENGTH = 10_000;
const PREFIX = "recto.draft.";

export class Draft {
  readonly text = signal("");
  readonly uploads = new Uploads();
  /** True if the next message leaves the active skill. */
  readonly leavesSkill = signal(false);
  /** Characters as the server counts them. A text below the limit in UTF-16 units is below it in characters. */
  readonly length = computed(() => {
    const text = this.text.value;
    return text.length < MAX_LENGTH ? text.length : [...text].length;
  });
  readonly isEmpty = computed(() => !this.text.value.trim() && this.uploads.ready.value.length === 0);
  readonly canSend = computed(() => !this.isEmpty.value && !this.uploads.isBusy.value && this.length.value <= MAX_LENGTH);
  #restoredText: string | null = null;
  /** Text and files before a message was restored. They return once that message is sent or discarded. */
  #previous: { readonly text: string; readonly files: readonly AttachedFile[] } | null = null;

  constructor(text: string) {
    this.text.value = text;
  }

  clear(): void {
    batch(() => {
      this.text.value = "";
      this.leavesSkill.value = false;
      this.uploads.clear();
    });
    this.#restoredText = null;
    const before = this.#previous;
    this.#previous = null;
    if (before) this.#fill(before.text, before.files);
  }

  /** Restore a message for editing. */
  restoreMessage(text: string, files: readonly AttachedFile[]): void {
    const before = this.#previous ?? (this.isEmpty.value ? null : { text: this.text.value, files: this.uploads.ready.value });
    this.#previous = null;
    this.clear();
    this.#fill(text, files);
    this.#previous = before;
    this.#restoredText = text;
  }

  #fill(text: string, files: readonly AttachedFile[]): void {
    this.text.value = text;
    this.uploads.restore(files);
  }

  /** Discard a restored message that the user has not changed. */
  discardRestored(): void {
    if (this.#restoredText === this.text.value) this.clear();
  }
}

const drafts = new Map<string, Draft>();

export function draftOf(thread: OpenThread): Draft {
  const cached = drafts.get(thread.id);
  if (cached) return cached;
  const draft = new Draft(readStored(storageKey(thread)));
  drafts.set(thread.id, draft);
  persist(thread, draft);
  return draft;
}

function persist(thread: OpenThread, draft: Draft): void {
  let name = storageKey(thread);
  effect(() => {
    const current = storageKey(thread);
    if (current !== name) store(name, "");
    name = current;
    store(current, draft.text.value);
  });
}

/** A new thread has another id after a reload. */
function storageKey(thread: OpenThread): string {
  return PREFIX + (thread.isNew.value ? "new" : thread.id);
}

function readStored(name: string): string {
  try {
    return sessionStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

function store(name: string, text: string): void {
  try {
    if (text) sessionStorage.setItem(name, text);
    else sessionStorage.removeItem(name);
  } catch {
    // If the browser blocks storage, drafts last as long as the page.
  }
}
