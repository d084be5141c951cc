/** The list of threads: searched, read on as one scrolls, renamed, and deleted with a moment to take it back. */

import { signal } from "@preact/signals";

import { beforeLeaving } from "../api/credential.ts";
import { deleteThread, listThreads, renameThread, type ThreadRow } from "../api/routes.ts";
import { notifyError } from "./notices.ts";
import { tellTabs } from "./tabs.ts";

export const threads = signal<readonly ThreadRow[]>([]);
export const search = signal("");
/** The cursor of the page that follows; null where there is none, undefined before the first. */
export const nextCursor = signal<string | null | undefined>(undefined);
export const isLoading = signal(false);
/** Threads that are gone from the list, and will be from the server unless somebody takes it back. */
const leaving = new Map<string, ReturnType<typeof setTimeout>>();

export const DELETE_MS = 6_000;
const PAGE = 50;
let generation = 0;

/** Read the list from its beginning; as much of it as is shown. */
export async function refreshThreads(): Promise<void> {
  const mine = ++generation;
  const limit = Math.min(100, Math.max(PAGE, threads.value.length));
  await load(mine, { limit, search: search.value || null }, () => []);
}

export async function loadOlderThreads(): Promise<void> {
  if (!nextCursor.value || isLoading.value) return;
  const mine = ++generation;
  const query = { limit: PAGE, search: search.value || null, cursor: nextCursor.value };
  await load(mine, query, () => threads.value);
}

export async function searchThreads(words: string): Promise<void> {
  search.value = words;
  await refreshThreads();
}

async function load(
  mine: number,
  query: Parameters<typeof listThreads>[0],
  before: () => readonly ThreadRow[],
): Promise<void> {
  isLoading.value = true;
  try {
    const page = await listThreads(query);
    // Who asked later is answered by another page.
    if (mine !== generation) return;
    const known = new Map([...before(), ...page.threads].map((row) => [row.id, row]));
    threads.value = [...known.values()].filter((row) => !leaving.has(row.id));
    nextCursor.value = page.next;
  } catch (error) {
    if (mine === generation) notifyError(error);
  } finally {
    if (mine === generation) isLoading.value = false;
  }
}

export async function rename(id: string, title: string): Promise<void> {
  const before = threads.value;
  threads.value = before.map((row) => (row.id === id ? { ...row, title } : row));
  try {
    await renameThread(id, title);
    tellTabs({ thread: id, change: "list" });
  } catch (error) {
    threads.value = before;
    notifyError(error);
  }
}

/** Gone from the list at once, from the server in a moment. The answer takes it back. */
export function remove(id: string): () => void {
  const before = threads.value;
  threads.value = before.filter((row) => row.id !== id);
  leaving.set(
    id,
    setTimeout(() => void deleteNow(id), DELETE_MS),
  );
  return () => {
    clearTimeout(leaving.get(id));
    leaving.delete(id);
    threads.value = before;
    void refreshThreads();
  };
}

async function deleteNow(id: string): Promise<void> {
  clearTimeout(leaving.get(id));
  try {
    await deleteThread(id);
    tellTabs({ thread: id, change: "list" });
  } catch (error) {
    notifyError(error);
  }
  leaving.delete(id);
}

// A page that is left, and whoever signs out, meant what they said.
const deleteAll = () => Promise.all([...leaving.keys()].map(deleteNow));
addEventListener("pagehide", () => void deleteAll());
beforeLeaving(deleteAll);
