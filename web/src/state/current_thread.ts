/** The open conversation. It follows the URL. */

import { effect, signal, untracked } from "@preact/signals";

import { OpenThread } from "../conversation/open_thread.ts";
import { newId } from "./ids.ts";
import { go, route } from "./route.ts";
import { onTabMessage, type TabMessage } from "./tabs.ts";
import { refreshThreads } from "./threads.ts";

export const currentThread = signal<OpenThread>(new OpenThread(newId(), { isNew: true }));

const POLL_MS = 15_000;

/**
 * Keep the conversation and the list up to date with the URL, other tabs and other devices. Return a function that
 * stops it.
 */
export function watchCurrentThread(): () => void {
  const stops = [effect(followUrl), effect(refreshOnRun), onTabMessage((news) => void handleTabMessage(news))];
  const look = () => {
    if (document.visibilityState === "visible") void poll();
  };
  const timer = setInterval(look, POLL_MS);
  addEventListener("visibilitychange", look);
  addEventListener("online", look);
  return () => {
    for (const stop of stops) stop();
    clearInterval(timer);
    removeEventListener("visibilitychange", look);
    removeEventListener("online", look);
  };
}

/** Open an empty conversation. It gets a URL with its first message. */
export function startThread(): void {
  showThread(new OpenThread(newId(), { isNew: true }));
  go({ view: "chat", thread: null });
}

function followUrl(): void {
  const target = route.value;
  if (!("thread" in target)) return;
  untracked(() => {
    const { thread } = target;
    if (thread === null && !currentThread.value.isNew.value) showThread(new OpenThread(newId(), { isNew: true }));
    if (thread !== null && thread !== currentThread.value.id) showThread(new OpenThread(thread));
  });
}

/** Refresh the list when a run starts or stops, since that moves or names its thread. */
function refreshOnRun(): void {
  if (currentThread.value.isRunning.value || !currentThread.value.isNew.value) untracked(() => void refreshThreads());
}

function showThread(next: OpenThread): void {
  currentThread.value.close();
  currentThread.value = next;
}

async function handleTabMessage({ thread, change }: TabMessage): Promise<void> {
  await refreshThreads();
  if (thread !== currentThread.value.id) return;
  await (change === "view" ? currentThread.value.reload() : currentThread.value.catchUp());
}

async function poll(): Promise<void> {
  await refreshThreads();
  await currentThread.value.catchUp();
}
