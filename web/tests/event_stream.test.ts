/** Following a run to its end: partial events, connections lost at every byte, rejections, joining. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { AguiEvent } from "../src/api/agui.ts";
import { credential, signIn } from "../src/api/credential.ts";
import { EventParser, followRun, retryDelay } from "../src/api/event_stream.ts";
import { ApiError } from "../src/api/request.ts";

const EVENTS: AguiEvent[] = [
  { type: "RUN_STARTED", threadId: "t", runId: "r" },
  { type: "TEXT_MESSAGE_START", messageId: "a" },
  ...["One ", "two ", "三 ", "four"].map((delta): AguiEvent => ({ type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta })),
  { type: "TEXT_MESSAGE_END", messageId: "a" },
  { type: "RUN_FINISHED", outcome: { type: "success" } },
];
const BLOCKS = EVENTS.map((event, place) => `id: ${place + 1}\nevent: x\ndata: ${JSON.stringify(event)}\n\n`);

describe("EventParser", () => {
  test("parses the same events one character at a time, with heartbeats between them", () => {
    const parser = new EventParser();
    const text = `: hello\n\n${BLOCKS.join(": beat\n\n")}`;
    const events = [...text].flatMap((character) => parser.push(character));
    expect(events).toEqual(EVENTS.map((event, place) => ({ id: place + 1, event })));
  });

  test("data lines form one event, and a partial event waits for its rest", () => {
    const parser = new EventParser();
    expect(parser.push('data: {"type":\ndata: "RUN_STARTED"}\n')).toEqual([]);
    expect(parser.push("\n")).toEqual([{ id: null, event: { type: "RUN_STARTED" } }]);
  });
});

interface LoggedRequest {
  readonly url: string;
  readonly last: string | null;
}

/** Serve the events after the last id. The n-th connection ends after `cuts[n]` bytes. */
function serve(cuts: readonly number[]): { requests: LoggedRequest[] } {
  const requests: LoggedRequest[] = [];
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const last = new Headers(init.headers).get("last-event-id");
    const cut = cuts[requests.length];
    requests.push({ url, last });
    const bytes = new TextEncoder().encode(BLOCKS.slice(Number(last ?? 0)).join(""));
    return Promise.resolve(new Response(cut === undefined ? bytes : bytes.slice(0, cut)));
  });
  return { requests };
}

async function follow(options: { join?: boolean } = {}) {
  const events: AguiEvent[] = [];
  const connection: string[] = [];
  await followRun("r 1", {
    ...options,
    signal: new AbortController().signal,
    pause: () => Promise.resolve(),
    onEvent: (event) => events.push(event),
    onConnection: (state) => {
      if (connection.at(-1) !== state) connection.push(state);
    },
  });
  return { events, connection };
}

beforeEach(() => signIn("token"));
afterEach(() => vi.unstubAllGlobals());

describe("followRun", () => {
  test("a connection lost after any event loses and repeats nothing", async () => {
    for (let count = 0; count < BLOCKS.length; count += 1) {
      const { requests } = serve([new TextEncoder().encode(BLOCKS.slice(0, count).join("")).length]);
      const { events, connection } = await follow();
      expect(events).toEqual(EVENTS);
      expect(requests.map(({ last }) => last)).toEqual([null, count ? String(count) : null]);
      expect(connection).toEqual(count ? ["open", "lost", "open"] : ["lost", "open"]);
    }
  });

  test("a connection lost at any byte loses and repeats nothing", async () => {
    const length = new TextEncoder().encode(BLOCKS.join("")).length;
    for (let cut = 0; cut < length - 1; cut += 1) {
      serve([cut]);
      expect((await follow()).events).toEqual(EVENTS);
    }
  });

  test("many lost connections lose and repeat nothing", async () => {
    serve(Array.from({ length: 40 }, (_, place) => 60 + (place % 50)));
    expect((await follow()).events).toEqual(EVENTS);
  });

  test("an unreachable or overloaded server is retried", async () => {
    let tries = 0;
    vi.stubGlobal("fetch", () => {
      tries += 1;
      if (tries === 1) return Promise.reject(new TypeError("network"));
      if (tries === 2) return Promise.resolve(new Response("{}", { status: 503 }));
      return Promise.resolve(new Response(BLOCKS.join("")));
    });
    const { events, connection } = await follow();
    expect(events).toEqual(EVENTS);
    expect(connection).toEqual(["lost", "open"]);
  });

  test("a rejected credential ends the stream and is forgotten", async () => {
    const rejection = new Response(JSON.stringify({ detail: "No." }), { status: 401 });
    vi.stubGlobal("fetch", () => Promise.resolve(rejection));
    await expect(follow()).rejects.toThrow(new ApiError(401, "No."));
    expect(credential.value).toBeNull();
  });

  test("joining asks for a snapshot once, and a reconnect sends the last event id", async () => {
    const { requests } = serve([new TextEncoder().encode(BLOCKS.slice(0, 2).join("")).length]);
    await follow({ join: true });
    expect(requests.map(({ url }) => new URL(url, "http://x").searchParams.get("join"))).toEqual(["1", null]);
    expect(requests[0]?.url).toContain("/runs/r%201/events");
  });

  test("an aborted follower ends at once and does not reconnect", async () => {
    const controller = new AbortController();
    let tries = 0;
    vi.stubGlobal("fetch", (_: string, { signal }: RequestInit) => {
      tries += 1;
      return new Promise((_answer, fail) => signal?.addEventListener("abort", () => fail(new Error("aborted"))));
    });
    const end = followRun("r", { signal: controller.signal, onConnection: () => undefined, onEvent: () => undefined });
    controller.abort();
    await end;
    expect(tries).toBe(1);
  });
});

test("retry delays grow up to a limit", () => {
  expect([1, 2, 3, 4].map(retryDelay)).toEqual([250, 500, 1000, 2000]);
  expect(retryDelay(20)).toBe(15_000);
});
