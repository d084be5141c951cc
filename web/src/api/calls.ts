/** Model calls as the server tells them: which there are, one with its page, and what is other in the next. */

import { ask, send } from "./request.ts";
import type { Call as LooseCall, Difference as LooseDifference } from "./routes.ts";
import type { components } from "./schema.ts";

type Shapes = components["schemas"];

export type Decision = "kept" | "folded" | "cut" | "repaired" | "injected" | "dropped";
export type PartKind = "envelope" | "tool" | "system" | "prompt" | "quote" | "summary" | "message" | "closing";
/** Bytes of a page, from and up to. */
export type Span = readonly [number, number];

export interface Receipt {
  readonly rule: string;
  readonly ruleName?: string;
  readonly tool: string;
  readonly paths: readonly string[];
  readonly tokens: { readonly before: number; readonly after: number };
  readonly reason: string;
}

/** A part of a page, or one that was left out of it. `source` is a message's id, a tool's name, or what it is. */
export interface Part {
  readonly kind: PartKind;
  readonly source: string;
  readonly role: string | null;
  readonly decision: Decision;
  readonly rule: string | null;
  readonly ruleName?: string;
  readonly reason: string;
  readonly tokens: { readonly before: number; readonly after: number };
  readonly span: Span | null;
  readonly words: string | null;
  readonly receipts?: readonly Receipt[];
  /** Of messages left out together, the last and how many. */
  readonly upto?: string;
  readonly count?: number;
}

export interface Manifest {
  readonly parts: readonly Part[];
  readonly tokens: number;
  readonly skill?: string | null;
}

export interface Usage {
  readonly inputTokens?: number | null;
  readonly outputTokens?: number | null;
  readonly reasoningTokens?: number | null;
  readonly cachedInputTokens?: number | null;
  readonly cacheWriteInputTokens?: number | null;
}

export type ThreadCall = Omit<Shapes["ThreadCallRow"], "usage"> & { readonly usage: Usage | null };
export type Call = Omit<LooseCall, "manifest" | "usage"> & {
  readonly manifest: Manifest | null;
  readonly usage: Usage | null;
};
export type Preview = Omit<Shapes["PreviewShape"], "manifest"> & { readonly manifest: Manifest };

/** Where a call is to be found. */
export interface CallPlace {
  readonly run: string;
  readonly n: number;
}

export interface DifferenceRow {
  readonly change: "same" | "added" | "gone" | "changed";
  readonly places: { readonly before: Span | null; readonly after: Span | null };
  readonly count?: number;
  readonly tokens?: number;
  readonly before?: Part;
  readonly after?: Part;
  readonly fields?: readonly string[];
  readonly instead?: Pick<Part, "source" | "decision" | "rule" | "ruleName" | "reason" | "upto" | "count">;
}

export interface BytePlace {
  readonly place: number;
  readonly kind: PartKind;
  readonly source: string;
  readonly role: string | null;
  readonly into: number;
}

export interface PrefixBreak {
  readonly cause: string;
  readonly source: string;
  readonly bytesKept: number;
  readonly tokensAgain: number;
}

export type Difference = Omit<LooseDifference, "firstDifference" | "prefixBreak" | "parts"> & {
  readonly firstDifference: {
    readonly offset: number;
    readonly before: BytePlace | null;
    readonly after: BytePlace | null;
  } | null;
  readonly prefixBreak: PrefixBreak | null;
  readonly parts: readonly DifferenceRow[];
};

/** As many calls of a thread as the server tells at once. */
export const MOST_CALLS = 500;

const AGENT = "/api/v1/agent";
const thread = (id: string) => `${AGENT}/threads/${encodeURIComponent(id)}`;
const calls = (run: string) => `${AGENT}/runs/${encodeURIComponent(run)}/calls`;

/** Newest first. */
export const listThreadCalls = (id: string) =>
  ask<{ calls: ThreadCall[] }>(`${thread(id)}/calls`, { query: { limit: MOST_CALLS } });
export const listRunCalls = (run: string) => ask<{ calls: Omit<ThreadCall, "run" | "saved">[] }>(calls(run));
export const getCall = ({ run, n }: CallPlace) => ask<Call>(`${calls(run)}/${n}`);
export const getCallBytes = async ({ run, n }: CallPlace) =>
  await bytesOf(await send(`${calls(run)}/${n}`, { query: { raw: 1 } }));
export const getCurl = async ({ run, n }: CallPlace) =>
  await (await send(`${calls(run)}/${n}`, { query: { as: "curl" } })).text();
export const compareCalls = (before: CallPlace, after: CallPlace) =>
  ask<Difference>(`${calls(before.run)}/${before.n}/diff/${after.n}`, { query: { run: after.run } });
export const getPreview = (id: string, body: unknown) =>
  ask<Preview>(`${thread(id)}/preview`, { method: "POST", body });
export const getPreviewBytes = async (id: string, body: unknown) =>
  await bytesOf(await send(`${thread(id)}/preview`, { method: "POST", query: { raw: 1 }, body }));

async function bytesOf(response: Response): Promise<Uint8Array> {
  return new Uint8Array(await response.arrayBuffer());
}
