/**
 * Server-sent events of a run, with reconnects.
 *
 * A stream that ends before RUN_FINISHED or RUN_ERROR is a lost connection. The next request resumes after the last
 * event id, so no event is lost or repeated.
 */

import type { AguiEvent } from "./agui.ts";
import { ApiError, send } from "./request.ts";

interface NumberedEvent {
  readonly id: number | null;
  readonly event: AguiEvent;
}

/** Incremental parser of server-sent events. It keeps incomplete events until their rest arrives. */
export class EventParser {
  #rest = "";

  push(text: string): NumberedEvent[] {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.map(parseBlock).filter((event) => event !== null);
  }
}

function parseBlock(block: string): NumberedEvent | null {
  let id: number | null = null;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("id:")) id = Number(line.slice(3).trim());
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  if (!data.length) return null;
  return { id, event: JSON.parse(data.join("\n")) as AguiEvent };
}

interface Follower {
  readonly onEvent: (event: AguiEvent) => void;
  /** Called when the connection is lost and when it is open again. */
  readonly onConnection: (state: "open" | "lost") => void;
  readonly signal: AbortSignal;
  /** Start with a snapshot of the conversation. */
  readonly join?: boolean;
  /** Milliseconds without a byte until the connection counts as lost. It spans several heartbeats. */
  readonly silence?: number;
  readonly pause?: (milliseconds: number) => Promise<void>;
}

const SILENCE = 50_000;
const LONGEST_PAUSE = 15_000;

/** Pass the events of a run to the listener until the run ends or the signal aborts. */
export async function followRun(run: string, follower: Follower): Promise<void> {
  const pause = follower.pause ?? wait;
  let last: number | null = null;
  for (let failures = 0; !follower.signal.aborted; failures += 1) {
    if (failures) await pause(retryDelay(failures));
    try {
      const before: number | null = last;
      for await (const { id, event } of readEvents(run, last, follower)) {
        follower.onConnection("open");
        if (id !== null) last = id;
        follower.onEvent(event);
        if (event.type === "RUN_FINISHED" || event.type === "RUN_ERROR") return;
      }
      if (last !== before) failures = 0;
    } catch (error) {
      if (follower.signal.aborted) return;
      if (error instanceof ApiError && !error.isTransient) throw error;
    }
    if (!follower.signal.aborted) follower.onConnection("lost");
  }
}

export function retryDelay(failures: number): number {
  return Math.min(LONGEST_PAUSE, 250 * 2 ** (failures - 1));
}

async function* readEvents(run: string, last: number | null, follower: Follower): AsyncGenerator<NumberedEvent> {
  const connection = new AbortController();
  const abort = () => connection.abort();
  follower.signal.addEventListener("abort", abort);
  let timer = setTimeout(abort, follower.silence ?? SILENCE);
  try {
    const response = await send(`/api/v1/agent/runs/${encodeURIComponent(run)}/events`, {
      query: { join: follower.join && last === null ? 1 : null, protocolVersion: "1.0" },
      headers: { accept: "text/event-stream", ...(last === null ? {} : { "last-event-id": String(last) }) },
      signal: connection.signal,
    });
    const parser = new EventParser();
    for await (const text of textOf(response)) {
      clearTimeout(timer);
      timer = setTimeout(abort, follower.silence ?? SILENCE);
      yield* parser.push(text);
    }
  } finally {
    clearTimeout(timer);
    follower.signal.removeEventListener("abort", abort);
    connection.abort();
  }
}

async function* textOf(response: Response): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(finish, milliseconds);
    addEventListener("online", finish);
    function finish() {
      clearTimeout(timer);
      removeEventListener("online", finish);
      resolve();
    }
  });
}
