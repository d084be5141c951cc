/** State of the inspector: the calls of a thread, the open call, and the preview. */

import { batch, signal } from "@preact/signals";

import * as api from "../../api/calls.ts";
import type { Call, CallRef, Difference, Preview, ThreadCall } from "../../api/calls.ts";
import { ApiError } from "../../api/request.ts";

export type Tab = "page" | "changes" | "request" | "thread";

/** Selected tab. It stays the same from call to call. */
export const tab = signal<Tab>("page");
/** True to decode the escapes in the text of parts. */
export const isReadable = signal(false);

/** An open call. Its details load on demand. */
export interface OpenCall {
  readonly place: CallRef;
  readonly call: Call;
  readonly before: ThreadCall | null;
  readonly bytes: LazyValue<Uint8Array>;
  readonly curl: LazyValue<string>;
  readonly difference: LazyValue<Difference | null>;
}

export class InspectorState {
  readonly thread: string;
  /** Calls of the thread, oldest first. */
  readonly calls = signal<readonly ThreadCall[]>([]);
  readonly open = signal<OpenCall | null>(null);
  readonly isLoading = signal(true);
  readonly problem = signal<string | null>(null);
  #requests = 0;

  constructor(thread: string) {
    this.thread = thread;
  }

  /** Open a call, or the last reply of the run if `n` is null. Only the latest request counts. */
  async show(run: string, n: number | null): Promise<void> {
    const request = ++this.#requests;
    this.isLoading.value = true;
    try {
      if (n === null || !this.#hasCall({ run, n })) await this.#loadCalls(run);
      const call = findCall(this.calls.value, run, n);
      const openCall = call ? await this.#openCall({ run, n: call.n }) : null;
      if (request !== this.#requests) return;
      batch(() => {
        this.open.value = openCall;
        this.problem.value = null;
        this.isLoading.value = false;
      });
    } catch (error) {
      if (request !== this.#requests) return;
      batch(() => {
        this.open.value = null;
        this.problem.value = errorText(error);
        this.isLoading.value = false;
      });
    }
  }

  /** Load the calls of a run that has ended, and reload the open call if it was incomplete. */
  async refresh(): Promise<void> {
    const place = this.open.value?.place;
    if (!place) return;
    await this.#loadCalls(place.run);
    if (this.open.value?.call.ended === null) await this.show(place.run, place.n);
  }

  #hasCall(place: CallRef): boolean {
    return this.calls.value.some((call) => isSameCall(call, place));
  }

  async #loadCalls(run: string): Promise<void> {
    const { calls } = await api.listThreadCalls(this.thread);
    // The server lists only the newest calls of a thread, so list an older run separately.
    if (calls.some((call) => call.run === run)) this.calls.value = calls.toReversed();
    else this.calls.value = (await api.listRunCalls(run)).calls.map((call) => ({ ...call, run, saved: null }));
  }

  async #openCall(place: CallRef): Promise<OpenCall> {
    const before = previousCall(this.calls.value, place);
    return {
      place,
      call: await api.getCall(place),
      before,
      bytes: new LazyValue(() => api.getCallBytes(place)),
      curl: new LazyValue(() => api.getCurl(place)),
      difference: new LazyValue(async () => (before ? await api.compareCalls(before, place) : null)),
    };
  }
}

/** Preview of a page, with its bytes. */
export interface OpenPreview {
  readonly preview: Preview;
  readonly bytes: LazyValue<Uint8Array>;
}

export class PreviewState {
  readonly thread: string;
  readonly open = signal<OpenPreview | null>(null);
  readonly isLoading = signal(true);
  readonly problem = signal<string | null>(null);
  #requests = 0;

  constructor(thread: string) {
    this.thread = thread;
  }

  async show(body: unknown): Promise<void> {
    const request = ++this.#requests;
    this.isLoading.value = true;
    try {
      const preview = await api.getPreview(this.thread, body);
      if (request !== this.#requests) return;
      batch(() => {
        this.open.value = { preview, bytes: new LazyValue(() => api.getPreviewBytes(this.thread, body)) };
        this.problem.value = null;
        this.isLoading.value = false;
      });
    } catch (error) {
      if (request !== this.#requests) return;
      batch(() => {
        this.problem.value = errorText(error);
        this.isLoading.value = false;
      });
    }
  }
}

export class LazyValue<Value> {
  readonly value = signal<Value | null>(null);
  readonly problem = signal<string | null>(null);
  readonly #request: () => Promise<Value>;
  #isRequested = false;

  constructor(request: () => Promise<Value>) {
    this.#request = request;
  }

  /** Request the value unless an earlier call did. */
  load(): void {
    if (this.#isRequested) return;
    this.#isRequested = true;
    this.#request().then(
      (value) =>
        batch(() => {
          this.value.value = value;
          this.problem.value = null;
        }),
      (error: unknown) => {
        this.problem.value = errorText(error);
      },
    );
  }
}

function errorText(error: unknown): string {
  return error instanceof ApiError ? error.detail : String(error instanceof Error ? error.message : error);
}

export function isSameCall(call: CallRef, place: CallRef): boolean {
  return call.run === place.run && call.n === place.n;
}

/** Return a call of a run. Without a number, return its last reply, or its last call. */
export function findCall(calls: readonly ThreadCall[], run: string, n: number | null): ThreadCall | null {
  const runCalls = calls.filter((call) => call.run === run);
  if (n !== null) return runCalls.find((call) => call.n === n) ?? null;
  return runCalls.findLast((call) => call.purpose === "reply") ?? runCalls.at(-1) ?? null;
}

interface Neighbors {
  readonly previous: ThreadCall | null;
  readonly next: ThreadCall | null;
}

export function neighborsOf(calls: readonly ThreadCall[], place: CallRef): Neighbors {
  const at = calls.findIndex((call) => isSameCall(call, place));
  if (at < 0) return { previous: null, next: null };
  return { previous: calls[at - 1] ?? null, next: calls[at + 1] ?? null };
}

/** Return the previous call with the same purpose, for the comparison. */
export function previousCall(calls: readonly ThreadCall[], place: CallRef): ThreadCall | null {
  const at = calls.findIndex((call) => isSameCall(call, place));
  const purpose = calls[at]?.purpose;
  return calls.slice(0, Math.max(at, 0)).findLast((call) => call.purpose === purpose) ?? null;
}

export function countOf(calls: readonly ThreadCall[], run: string): number {
  return calls.filter((call) => call.run === run).length;
}
