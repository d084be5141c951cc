/** Conversation list: search, paging, rename, and delete with undo. */

import { signal } from "@preact/signals";

import { onSignOut } from "../api/credential.ts";
import { deleteThread, listThreads, renameThread, type ThreadRow } from "../api/routes.ts";
import { notifyTabs } from "./tabs.ts";
import { notifyError } from "./toasts.ts";

export const threads = signal<readonly ThreadRow[]>([]);
export const search = signal("");
/** Cursor of the next page. Null after the last page, undefined before the first. */
export const nextCursor = signal<string | null | undefined>(undefined);
export const isLoading = signal(false);
/** Deleted threads that the user can still restore, with their timers. */
const pendingDeletes = new Map<string, ReturnType<typeof setTimeout>>();

export const DELETE_MS = 6_000;
const PAGE = 50;
let latestRequest = 0;

/** Reload the list, as many rows as it has now. */
export async function refreshThreads(): Promise<void> {
  const request = ++latestRequest;
  const limit = Math.min(100, Math.max(PAGE, threads.value.length));
  await load(request, { limit, search: search.value || null }, () => []);
}

export async function loadOlderThreads(): Promise<void> {
  if (!nextCursor.value || isLoading.value) return;
  const request = ++latestRequest;
  const query = { limit: PAGE, search: search.value || null, cursor: nextCursor.value };
  await load(request, query, () => threads.value);
}

export async function searchThreads(text: string): Promise<void> {
  search.value = text;
  await refreshThreads();
}

async function load(
  request: number,
  query: Parameters<typeof listThreads>[0],
  before: () => readonly ThreadRow[],
): Promise<void> {
  isLoading.value = true;
  try {
    const page = await listThreads(query);
    if (request !== latestRequest) return;
    const rows = new Map([...before(), ...page.threads].map((row) => [row.id, row]));
    threads.value = [...rows.values()].filter((row) => !pendingDeletes.has(row.id));
    nextCursor.value = page.next;
  } catch (error) {
    if (request === latestRequest) notifyError(error);
  } finally {
    if (request === latestRequest) isLoading.value = false;
  }
}

export async function rename(id: string, title: string): Promise<void> {
  const before = threads.value;
  threads.value = before.map((row) => (row.id === id ? { ...row, title } : row));
  try {
    await renameThread(id, title);
    notifyTabs({ thread: id, change: "list" });
  } catch (error) {
    threads.value = before;
    notifyError(error);
  }
}

/** Remove a thread from the list now and from the server in a moment. Return a function that undoes it. */
export function remove(id: string): () => void {
  const before = threads.value;
  threads.value = before.filter((row) => row.id !== id);
  pendingDeletes.set(
    id,
    setTimeout(() => void deleteNow(id), DELETE_MS),
  );
  return () => {
    clearTimeout(pendingDeletes.get(id));
    pendingDeletes.delete(id);
    threads.value = before;
    void refreshThreads();
  };
}

async function deleteNow(id: string): Promise<void> {
  clearTimeout(pendingDeletes.get(id));
  try {
    await deleteThread(id);
    notifyTabs({ thread: id, change: "list" });
  } catch (error) {
    notifyError(error);
  }
  pendingDeletes.delete(id);
}

// Leaving the page or signing out confirms all pending deletes.
const deleteAll = () => Promise.all([...pendingDeletes.keys()].map(deleteNow));
addEventListener("pagehide", () => void deleteAll());
onSignOut(deleteAll);
