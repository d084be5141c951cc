/** Tabs of one browser tell each other when a thread has changed, so that all of them show the same. */

export interface TabNews {
  readonly thread: string;
  readonly change: "run" | "view" | "list";
}

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("recto");

export function tellTabs(news: TabNews): void {
  channel?.postMessage(news);
}

export function onTabNews(listen: (news: TabNews) => void): () => void {
  const heard = (event: MessageEvent<TabNews>) => listen(event.data);
  channel?.addEventListener("message", heard);
  return () => channel?.removeEventListener("message", heard);
}
