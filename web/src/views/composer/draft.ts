/** What is written and not yet said in a thread. Its words outlast a reload of the tab, its files do not. */

import { batch, computed, effect, signal } from "@preact/signals";

import type { AttachedFile } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { Uploads } from "../../state/uploads.ts";

/** The server takes no longer message. */
export const LONGEST = 10_000;
const PREFIX = "recto.draft.";

export class Draft {
  readonly text = signal("");
  readonly uploads = new Uploads();
  /** The next message leaves the skill in force. */
  readonly leavesSkill = signal(false);
  readonly length = computed(() => lengthOf(this.text.value));
  readonly isEmpty = computed(() => !this.text.value.trim() && this.uploads.ready.value.length === 0);
  readonly canSend = computed(() => !this.isEmpty.value && !this.uploads.isBusy.value && this.length.value <= LONGEST);
  #broughtBack: string | null = null;
  /** What was in the box when a message came back into it; it is there again once that is said or undone. */
  #setAside: { readonly text: string; readonly files: readonly AttachedFile[] } | null = null;

  constructor(text: string) {
    this.text.value = text;
  }

  clear(): void {
    batch(() => {
      this.text.value = "";
      this.leavesSkill.value = false;
      this.uploads.clear();
    });
    this.#broughtBack = null;
    const before = this.#setAside;
    this.#setAside = null;
    if (before) this.#fill(before.text, before.files);
  }

  /** Words and files of a message that is to be said anew. */
  bringBack(text: string, files: readonly AttachedFile[]): void {
    const before = this.#setAside ?? (this.isEmpty.value ? null : { text: this.text.value, files: this.uploads.ready.value });
    this.#setAside = null;
    this.clear();
    this.#fill(text, files);
    this.#setAside = before;
    this.#broughtBack = text;
  }

  #fill(text: string, files: readonly AttachedFile[]): void {
    this.text.value = text;
    this.uploads.restore(files);
  }

  /** The message is in the conversation again: its words leave the box, unless somebody went on with them. */
  takeBack(): void {
    if (this.#broughtBack === this.text.value) this.clear();
  }
}

const drafts = new Map<string, Draft>();

export function draftOf(thread: OpenThread): Draft {
  const known = drafts.get(thread.id);
  if (known) return known;
  const draft = new Draft(readStored(nameOf(thread)));
  drafts.set(thread.id, draft);
  keep(thread, draft);
  return draft;
}

function keep(thread: OpenThread, draft: Draft): void {
  let name = nameOf(thread);
  effect(() => {
    const now = nameOf(thread);
    if (now !== name) store(name, "");
    name = now;
    store(now, draft.text.value);
  });
}

/** Characters as the server counts them; a short text cannot be too long by either count. */
function lengthOf(text: string): number {
  return text.length < LONGEST ? text.length : [...text].length;
}

/** A new thread has another id after a reload. */
function nameOf(thread: OpenThread): string {
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
    // Where storage is closed to the page, a draft lasts as long as the page.
  }
}
