/** The thread that is shown, as the address says; opened when it changes, closed when it is left. */

import { effect, signal, untracked } from "@preact/signals";

import { OpenThread } from "../conversation/open_thread.ts";
import { newId } from "./ids.ts";
import { go, route } from "./route.ts";
import { onTabNews, type TabNews } from "./tabs.ts";
import { refreshThreads } from "./threads.ts";

export const current = signal<OpenThread>(new OpenThread(newId(), { isNew: true }));

const LOOK_MS = 15_000;

/** Keep what is shown in step with the address, other tabs, and other devices. The answer ends that. */
export function watchCurrent(): () => void {
  const ends = [effect(followAddress), effect(listRuns), onTabNews((news) => void hearNews(news))];
  const look = () => {
    if (document.visibilityState === "visible") void lookAround();
  };
  const timer = setInterval(look, LOOK_MS);
  addEventListener("visibilitychange", look);
  addEventListener("online", look);
  return () => {
    for (const end of ends) end();
    clearInterval(timer);
    removeEventListener("visibilitychange", look);
    removeEventListener("online", look);
  };
}

/** An empty thread. It has an address once something was said in it. */
export function startThread(): void {
  replaceCurrent(new OpenThread(newId(), { isNew: true }));
  go({ view: "chat", thread: null });
}

function followAddress(): void {
  const shown = route.value;
  if (!("thread" in shown)) return;
  untracked(() => {
    const { thread } = shown;
    if (thread === null && !current.value.isNew.value) replaceCurrent(new OpenThread(newId(), { isNew: true }));
    if (thread !== null && thread !== current.value.id) replaceCurrent(new OpenThread(thread));
  });
}

/** A run that begins or ends moves its thread in the list, and may name it. */
function listRuns(): void {
  if (current.value.isRunning.value || !current.value.isNew.value) untracked(() => void refreshThreads());
}

function replaceCurrent(next: OpenThread): void {
  current.value.close();
  current.value = next;
}

async function hearNews({ thread, change }: TabNews): Promise<void> {
  await refreshThreads();
  if (thread !== current.value.id) return;
  await (change === "view" ? current.value.reload() : current.value.catchUp());
}

async function lookAround(): Promise<void> {
  await refreshThreads();
  await current.value.catchUp();
}
