/** Reading a run to its end: half events, lost connections at every place, rejections, joining. */

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
  test("gives the same events, one character at a time, with heartbeats between", () => {
    const parser = new EventParser();
    const text = `: hello\n\n${BLOCKS.join(": beat\n\n")}`;
    const events = [...text].flatMap((character) => parser.push(character));
    expect(events).toEqual(EVENTS.map((event, place) => ({ id: place + 1, event })));
  });

  test("data in several lines is one event, and half of one waits", () => {
    const parser = new EventParser();
    expect(parser.push('data: {"type":\ndata: "RUN_STARTED"}\n')).toEqual([]);
    expect(parser.push("\n")).toEqual([{ id: null, event: { type: "RUN_STARTED" } }]);
  });
});

interface Asked {
  readonly url: string;
  readonly last: string | null;
}

/** A server that sends bytes from behind the last number, and is cut off after some of them. */
function serve(cuts: readonly number[]): { asked: Asked[] } {
  const asked: Asked[] = [];
  vi.stubGlobal("fetch", (url: string, init: RequestInit) => {
    const last = new Headers(init.headers).get("last-event-id");
    const cut = cuts[asked.length];
    asked.push({ url, last });
    const bytes = new TextEncoder().encode(BLOCKS.slice(Number(last ?? 0)).join(""));
    return Promise.resolve(new Response(cut === undefined ? bytes : bytes.slice(0, cut)));
  });
  return { asked };
}

async function follow(options: { join?: boolean } = {}) {
  const heard: AguiEvent[] = [];
  const connection: string[] = [];
  await followRun("r 1", {
    ...options,
    signal: new AbortController().signal,
    pause: () => Promise.resolve(),
    onEvent: (event) => heard.push(event),
    onConnection: (state) => {
      if (connection.at(-1) !== state) connection.push(state);
    },
  });
  return { heard, connection };
}

beforeEach(() => signIn("token"));
afterEach(() => vi.unstubAllGlobals());

describe("followRun", () => {
  test("nothing is lost and nothing comes twice, cut behind every event", async () => {
    for (let count = 0; count < BLOCKS.length; count += 1) {
      const { asked } = serve([new TextEncoder().encode(BLOCKS.slice(0, count).join("")).length]);
      const { heard, connection } = await follow();
      expect(heard).toEqual(EVENTS);
      expect(asked.map(({ last }) => last)).toEqual([null, count ? String(count) : null]);
      expect(connection).toEqual(count ? ["open", "lost", "open"] : ["lost", "open"]);
    }
  });

  test("nor cut in the middle of events, at every byte", async () => {
    const length = new TextEncoder().encode(BLOCKS.join("")).length;
    for (let cut = 0; cut < length - 1; cut += 1) {
      serve([cut]);
      expect((await follow()).heard).toEqual(EVENTS);
    }
  });

  test("nor cut again and again", async () => {
    serve(Array.from({ length: 40 }, (_, place) => 60 + (place % 50)));
    expect((await follow()).heard).toEqual(EVENTS);
  });

  test("a server that cannot be reached, or has no room, is asked again", async () => {
    let tries = 0;
    vi.stubGlobal("fetch", () => {
      tries += 1;
      if (tries === 1) return Promise.reject(new TypeError("network"));
      if (tries === 2) return Promise.resolve(new Response("{}", { status: 503 }));
      return Promise.resolve(new Response(BLOCKS.join("")));
    });
    const { heard, connection } = await follow();
    expect(heard).toEqual(EVENTS);
    expect(connection).toEqual(["lost", "open"]);
  });

  test("a refused credential ends it and is forgotten", async () => {
    const refused = new Response(JSON.stringify({ detail: "No." }), { status: 401 });
    vi.stubGlobal("fetch", () => Promise.resolve(refused));
    await expect(follow()).rejects.toThrow(new ApiError(401, "No."));
    expect(credential.value).toBeNull();
  });

  test("who joins says so once; from then on the number counts", async () => {
    const { asked } = serve([new TextEncoder().encode(BLOCKS.slice(0, 2).join("")).length]);
    await follow({ join: true });
    expect(asked.map(({ url }) => new URL(url, "http://x").searchParams.get("join"))).toEqual(["1", null]);
    expect(asked[0]?.url).toContain("/runs/r%201/events");
  });

  test("who listens no more is waited for no more, and no other connection is asked for", async () => {
    const controller = new AbortController();
    let tries = 0;
    vi.stubGlobal("fetch", (_: string, { signal }: RequestInit) => {
      tries += 1;
      return new Promise((_answer, fail) => signal?.addEventListener("abort", () => fail(new Error("aborted"))));
    });
    const ended = followRun("r", { signal: controller.signal, onConnection: () => undefined, onEvent: () => undefined });
    controller.abort();
    await ended;
    expect(tries).toBe(1);
  });
});

test("pauses grow, up to a limit", () => {
  expect([1, 2, 3, 4].map(retryDelay)).toEqual([250, 500, 1000, 2000]);
  expect(retryDelay(20)).toBe(15_000);
});
