/** Messages between tabs of one browser about changes to threads. */

export interface TabMessage {
  readonly thread: string;
  readonly change: "run" | "view" | "list";
}

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("recto");

export function notifyTabs(message: TabMessage): void {
  channel?.postMessage(message);
}

export function onTabMessage(listen: (message: TabMessage) => void): () => void {
  const onMessage = (event: MessageEvent<TabMessage>) => listen(event.data);
  channel?.addEventListener("message", onMessage);
  return () => channel?.removeEventListener("message", onMessage);
}
