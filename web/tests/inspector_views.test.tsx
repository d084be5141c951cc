/** Rendered inspector: keys, chart, paged parts, preview and runs without calls. */

import { signal } from "@preact/signals";
import { beforeEach, expect, test, vi } from "vitest";

import type { Part } from "../src/api/calls.ts";
import { PartList } from "../src/views/inspector/parts/part_list.tsx";
import { LazyValue } from "../src/views/inspector/state.ts";
import { draw, enter, find, press, serve, texts } from "./page.ts";

const CALLS = [
  { run: "a", n: 1 },
  { run: "a", n: 2, saved: 300 },
  { run: "b", n: 1 },
  { run: "b", n: 2, usage: { inputTokens: 1200, cachedInputTokens: 800 } },
].map((change) => ({
  ...{ purpose: "reply", model: "m", started: "2026-01-01T00:00:00Z", firstToken: null, ended: "2026-01-01T00:00:01Z" },
  ...{ finish: null, usage: null, price: 5, tokens: 100, saved: 0, digest: "d", error: null },
  ...change,
}));
const part = (words: string, more: Partial<Part> = {}): Part => ({
  ...{ kind: "message", source: words, role: "user", decision: "kept", rule: null, reason: "as in the conversation" },
  ...{ tokens: { before: 1, after: 1 }, span: null, words },
  ...more,
});
const manifest = { tokens: 1, parts: [part("Hello there")] };
const details = {
  ...{ id: "t", title: "T", agent: "helper", updated: "1", activeRun: null },
  ...{ queued: [], interrupts: [], pendingCalls: [] },
};
const agent = { name: "helper", default: true, locale: "en", variantOf: null, skills: [], forms: [], starters: [] };
const SERVER: Record<string, unknown> = {
  "GET /agent/me": { user: "alice" },
  "GET /agent/agents": { agents: [agent] },
  "GET /agent/threads": { threads: [], next: null },
  "GET /agent/threads/t": details,
  "GET /agent/threads/t/messages": { messages: [], next: null, activeRun: null },
  "GET /agent/threads/t/calls": { calls: CALLS.toReversed() },
  "GET /agent/runs/b/calls/1/diff/2": { identical: false, firstDifference: null, prefixBreak: null, parts: [] },
  ...Object.fromEntries(
    CALLS.map((call) => [
      `GET /agent/runs/${call.run}/calls/${call.n}`,
      { ...call, manifest, bytes: 1, verified: true, damaged: [], page: null },
    ]),
  ),
};

beforeEach(() => sessionStorage.clear());

/** Open the page at a URL as after a reload, when only the browser's storage is left. */
async function open(at: string): Promise<HTMLElement> {
  vi.resetModules();
  sessionStorage.setItem("recto.token", "key");
  history.replaceState(null, "", at);
  const { App } = await import("../src/app.tsx");
  return draw(<App />);
}

const PLACE = ".inspector-about strong";
const place = async (page: HTMLElement) => (await find(page, PLACE)).textContent;

test.each([
  ["[", "b/calls/2", "b/calls/1"],
  ["[", "b/calls/1", "a/calls/2"],
  ["]", "a/calls/2", "b/calls/1"],
])("X1: the key %s goes from call %s to %s, except in the message box", async (key, from, to) => {
  serve(SERVER);
  const page = await open(`#/threads/t/runs/${from}`);
  const box = await find(page, "#write");
  const beforeKey: string[] = [];
  // Keys work once the calls are loaded, so press them again until then.
  const pressKey = () => {
    box.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    beforeKey.push(location.hash);
    window.dispatchEvent(new KeyboardEvent("keydown", { key }));
    return location.hash;
  };
  await expect.poll(pressKey).toBe(`#/threads/t/runs/${to}`);
  expect(new Set(beforeKey)).toEqual(new Set([`#/threads/t/runs/${from}`]));
  await expect.poll(() => place(page)).toBe(`Call ${to.at(-1)} of 2`);
});

test("X1: a URL without a call number opens the last reply of the run", async () => {
  serve(SERVER);
  const page = await open("#/threads/t/runs/b");
  await expect.poll(() => location.hash).toBe("#/threads/t/runs/b/calls/2");
  await press(page, "Previous call");
  await expect.poll(() => place(page)).toBe("Call 1 of 2");
  await press(page, "Next call");
  await expect.poll(() => place(page)).toBe("Call 2 of 2");
});

test("X1: a chart and a table list and link all calls of the thread", async () => {
  serve(SERVER);
  const page = await open("#/threads/t/runs/b/calls/2");
  await press(page, "Conversation");
  await find(page, ".plot .bar");
  const count = (where: string) => page.querySelectorAll(`.plot ${where}`).length;
  expect([".bar", ".price", ".saved", ".cached", ".bar.current"].map(count)).toEqual([4, 4, 1, 1, 1]);
  const rows = [...page.querySelectorAll(".call-table tbody tr")].map((row) => texts(row, "td").slice(1, 4));
  expect(rows[1]).toEqual(["100", "0", "300"]);
  expect(rows[3]).toEqual(["1,200", "800", "0"]);
  const links = ["a/calls/1", "a/calls/2", "b/calls/1", "b/calls/2"].map((at) => `#/threads/t/runs/${at}`);
  for (const where of [".plot .bar", ".call-table a"]) {
    expect([...page.querySelectorAll(where)].map((link) => link.getAttribute("href"))).toEqual(links);
  }
});

test("X1: a page that starts with the entire previous page reuses the cache", async () => {
  serve(SERVER);
  const page = await open("#/threads/t/runs/b/calls/2");
  await press(page, "Changes");
  expect((await find(page, ".cache-holds")).textContent).toContain("the prompt cache is reused");
  expect(page.querySelector(".cache-break")).toBeNull();
});

test("X1: thousands of parts render a hundred at a time, also when filtered by decision", async () => {
  const two = (at: number) => [part(`folded ${at}`, { decision: "folded" }), part(`kept ${at}`)];
  const parts = Array.from({ length: 500 }, (_, at) => two(at)).flat();
  const sources = { bytes: new LazyValue(() => Promise.resolve(new Uint8Array())), originals: signal(new Map()) };
  const page = draw(<PartList parts={parts} sources={sources} />);
  const countParts = () => page.querySelectorAll(".parts li.part").length;
  expect(countParts()).toBe(100);
  await press(page, "Show 100 more of 900");
  await expect.poll(countParts).toBe(200);
  expect(texts(page, "li.more")).toEqual(["Show 100 more of 800"]);
  await press(page, "kept 500");
  await expect.poll(() => texts(page, "li.more")).toEqual(["Show 100 more of 400"]);
  expect(countParts()).toBe(100);
});

test("X1: the preview of a new thread survives a reload, with the draft", async () => {
  const words = "My first message";
  const preview = { next: "call_model", notes: [], model: "m", agent: "helper", tokens: 1, bytes: 1 };
  const name = "POST /agent/threads/*/preview";
  const requestsOf = serve({ ...SERVER, [name]: { ...preview, manifest: { tokens: 1, parts: [part(words)] } } });
  enter(await find<HTMLInputElement>(await open("#/"), "#write"), words);
  expect(requestsOf(name)).toEqual([]);

  const page = await open("#/preview");
  expect((await find<HTMLTextAreaElement>(page, "#write")).value).toBe(words);
  expect((await find(page, ".part")).textContent).toContain(words);
  expect(requestsOf(name).at(-1)?.body).toMatchObject({ messages: [{ role: "user", content: words }] });
  expect(requestsOf("POST /agent/runs")).toEqual([]);
});

test("X1: a run without calls shows an empty state that can be retried", async () => {
  const answers: Record<string, unknown> = { ...SERVER, "GET /agent/runs/x/calls": { calls: [] } };
  serve(answers);
  const page = await open("#/threads/t/runs/x");
  await expect.poll(() => texts(page, ".inspector-empty h2")).toEqual(["No model calls stored for this response"]);
  answers["GET /agent/threads/t/calls"] = { calls: [{ ...CALLS[0], run: "x" }] };
  answers["GET /agent/runs/x/calls/1"] = SERVER["GET /agent/runs/a/calls/1"];
  await press(page, "Try again");
  expect(await place(page)).toBe("Call 1 of 1");
});

test("X1: an unknown run shows the server's error", async () => {
  serve(SERVER);
  const page = await open("#/threads/t/runs/unknown");
  await expect.poll(() => texts(page, ".inspector-empty .problem")).toEqual(["No GET /agent/runs/unknown/calls"]);
  expect(texts(page, ".inspector-empty button")).toEqual(["Try again"]);
});
