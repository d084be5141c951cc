/** What the inspector shows: the calls of a thread, one of them with its page, and what would be sent next. */

import { batch, signal } from "@preact/signals";

import * as api from "../../api/calls.ts";
import type { Call, CallPlace, Difference, Preview, ThreadCall } from "../../api/calls.ts";
import { callBefore, chosenCall, isAt } from "./thread/call_order.ts";
import { Later, problemOf } from "./later.ts";

export type Tab = "page" | "changes" | "request" | "thread";

/** Which of the views of a call: it stays as one goes from call to call. */
export const tab = signal<Tab>("page");
/** Text of parts with its escapes read, or byte for byte. */
export const isReadable = signal(false);

/** A call that is shown, with what is read of it only when somebody looks. */
export interface OpenCall {
  readonly place: CallPlace;
  readonly call: Call;
  readonly before: ThreadCall | null;
  readonly bytes: Later<Uint8Array>;
  readonly curl: Later<string>;
  readonly difference: Later<Difference | null>;
}

export class Inspection {
  readonly thread: string;
  /** Oldest first. */
  readonly calls = signal<readonly ThreadCall[]>([]);
  readonly open = signal<OpenCall | null>(null);
  readonly isLoading = signal(true);
  readonly problem = signal<string | null>(null);
  #asked = 0;

  constructor(thread: string) {
    this.thread = thread;
  }

  /** Open a call; without a number the run's last reply. The last one that was asked for is shown. */
  async show(run: string, n: number | null): Promise<void> {
    const mine = ++this.#asked;
    this.isLoading.value = true;
    try {
      if (n === null || !this.#knows({ run, n })) await this.#loadCalls(run);
      const chosen = chosenCall(this.calls.value, run, n);
      const opened = chosen ? await this.#opened({ run, n: chosen.n }) : null;
      if (mine !== this.#asked) return;
      batch(() => {
        this.open.value = opened;
        this.problem.value = null;
        this.isLoading.value = false;
      });
    } catch (error) {
      if (mine !== this.#asked) return;
      batch(() => {
        this.open.value = null;
        this.problem.value = problemOf(error);
        this.isLoading.value = false;
      });
    }
  }

  /** A run has ended: there are more calls than before, and the one that is shown may have got its reply. */
  async refresh(): Promise<void> {
    const place = this.open.value?.place;
    if (!place) return;
    await this.#loadCalls(place.run);
    if (this.open.value?.call.ended === null) await this.show(place.run, place.n);
  }

  #knows(place: CallPlace): boolean {
    return this.calls.value.some((call) => isAt(call, place));
  }

  async #loadCalls(run: string): Promise<void> {
    const { calls } = await api.listThreadCalls(this.thread);
    // A thread tells its newest calls only: an older run is looked at by itself.
    this.calls.value = calls.some((call) => call.run === run) ? calls.toReversed() : await callsOfRun(run);
  }

  async #opened(place: CallPlace): Promise<OpenCall> {
    const before = callBefore(this.calls.value, place);
    return {
      place,
      call: await api.getCall(place),
      before,
      bytes: new Later(() => api.getCallBytes(place)),
      curl: new Later(() => api.getCurl(place)),
      difference: new Later(async () => (before ? await api.compareCalls(before, place) : null)),
    };
  }
}

async function callsOfRun(run: string): Promise<ThreadCall[]> {
  const { calls } = await api.listRunCalls(run);
  return calls.map((call) => ({ ...call, run, saved: null }));
}

/** A page that is not sent, with the bytes of the same input. */
export interface OpenPreview {
  readonly preview: Preview;
  readonly bytes: Later<Uint8Array>;
}

export class Previewing {
  readonly thread: string;
  readonly open = signal<OpenPreview | null>(null);
  readonly isLoading = signal(true);
  readonly problem = signal<string | null>(null);
  #asked = 0;

  constructor(thread: string) {
    this.thread = thread;
  }

  async show(body: unknown): Promise<void> {
    const mine = ++this.#asked;
    this.isLoading.value = true;
    try {
      const preview = await api.getPreview(this.thread, body);
      if (mine !== this.#asked) return;
      batch(() => {
        this.open.value = { preview, bytes: new Later(() => api.getPreviewBytes(this.thread, body)) };
        this.problem.value = null;
        this.isLoading.value = false;
      });
    } catch (error) {
      if (mine !== this.#asked) return;
      batch(() => {
        this.problem.value = problemOf(error);
        this.isLoading.value = false;
      });
    }
  }
}
