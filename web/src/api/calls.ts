/** Model calls of the API: lists, a single call with its page, differences and previews. */

import { fetchJson, send } from "./request.ts";
import type { Call as LooseCall, Difference as LooseDifference } from "./routes.ts";
import type { components } from "./schema.ts";

type Shapes = components["schemas"];

export type Decision = "kept" | "folded" | "cut" | "repaired" | "injected" | "dropped";
type PartKind = "envelope" | "tool" | "system" | "prompt" | "quote" | "summary" | "message" | "closing";
/** Start and end offset in the bytes of a page. The end is exclusive. */
export type Span = readonly [number, number];

interface Receipt {
  readonly rule: string;
  readonly ruleName?: string;
  readonly tool: string;
  readonly paths: readonly string[];
  readonly tokens: { readonly before: number; readonly after: number };
  readonly reason: string;
}

/** A part of a page, or a part left out of it. `source` is a message id, a tool name, or the name of the part. */
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
  /** Id of the last message and their number, if several messages were left out together. */
  readonly upto?: string;
  readonly count?: number;
}

interface Manifest {
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

export interface CallRef {
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

interface BytePosition {
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
    readonly before: BytePosition | null;
    readonly after: BytePosition | null;
  } | null;
  readonly prefixBreak: PrefixBreak | null;
  readonly parts: readonly DifferenceRow[];
};

/** Maximum number of calls that the server lists per request. */
export const MAX_CALLS = 500;

const AGENT = "/api/v1/agent";
const thread = (id: string) => `${AGENT}/threads/${encodeURIComponent(id)}`;
const calls = (run: string) => `${AGENT}/runs/${encodeURIComponent(run)}/calls`;

/** List calls, newest first. */
export const listThreadCalls = (id: string) =>
  fetchJson<{ calls: ThreadCall[] }>(`${thread(id)}/calls`, { query: { limit: MAX_CALLS } });
export const listRunCalls = (run: string) => fetchJson<{ calls: Omit<ThreadCall, "run" | "saved">[] }>(calls(run));
export const getCall = ({ run, n }: CallRef) => fetchJson<Call>(`${calls(run)}/${n}`);
export const getCallBytes = async ({ run, n }: CallRef) =>
  await bytesOf(await send(`${calls(run)}/${n}`, { query: { raw: 1 } }));
export const getCurl = async ({ run, n }: CallRef) =>
  await (await send(`${calls(run)}/${n}`, { query: { as: "curl" } })).text();
export const compareCalls = (before: CallRef, after: CallRef) =>
  fetchJson<Difference>(`${calls(before.run)}/${before.n}/diff/${after.n}`, { query: { run: after.run } });
export const getPreview = (id: string, body: unknown) =>
  fetchJson<Preview>(`${thread(id)}/preview`, { method: "POST", body });
export const getPreviewBytes = async (id: string, body: unknown) =>
  await bytesOf(await send(`${thread(id)}/preview`, { method: "POST", query: { raw: 1 }, body }));

async function bytesOf(response: Response): Promise<Uint8Array> {
  return new Uint8Array(await response.arrayBuffer());
}
