/** Routes in the URL hash, so that back, forward and links work. */

import { computed, signal } from "@preact/signals";

export type Route =
  | { readonly view: "chat"; readonly thread: string | null }
  | { readonly view: "call"; readonly thread: string; readonly run: string; readonly n: number | null }
  | { readonly view: "preview"; readonly thread: string | null }
  | { readonly view: "profile" }
  | { readonly view: "savings" };

const hash = signal(location.hash);

addEventListener("hashchange", () => {
  hash.value = location.hash;
});

export const route = computed(() => readRoute(hash.value));

export function readRoute(text: string): Route {
  const [view, thread, runs, run, calls, n] = text.replace(/^#\/?/, "").split("/").map(decode);
  if (view === "profile" || view === "savings") return { view };
  if (view === "threads" && thread && runs === "runs" && run) {
    return { view: "call", thread, run, n: calls === "calls" && n && /^\d+$/.test(n) ? Number(n) : null };
  }
  if (view === "preview") return { view: "preview", thread: null };
  if (view === "threads" && thread && runs === "preview") return { view: "preview", thread };
  return { view: "chat", thread: view === "threads" && thread ? thread : null };
}

export function linkTo(target: Route): string {
  switch (target.view) {
    case "profile":
    case "savings":
      return `#/${target.view}`;
    case "call": {
      const run = `#/threads/${encodeURIComponent(target.thread)}/runs/${encodeURIComponent(target.run)}`;
      return target.n === null ? run : `${run}/calls/${target.n}`;
    }
    case "preview":
      return target.thread === null ? "#/preview" : `#/threads/${encodeURIComponent(target.thread)}/preview`;
    case "chat":
      return target.thread === null ? "#/" : `#/threads/${encodeURIComponent(target.thread)}`;
  }
}

export function go(target: Route, { replace = false }: { replace?: boolean } = {}): void {
  const link = linkTo(target);
  if (replace) history.replaceState(null, "", link);
  else history.pushState(null, "", link);
  hash.value = location.hash;
}

addEventListener("popstate", () => {
  hash.value = location.hash;
});

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
