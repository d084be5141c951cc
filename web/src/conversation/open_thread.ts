/** A thread that is shown: its messages, the run at work on it, and what waits for a person. Read here, changed by actions. */

import { batch, computed, signal } from "@preact/signals";

import type { AguiEvent, MessageRow } from "../api/agui.ts";
import { followRun } from "../api/event_stream.ts";
import { ApiError } from "../api/request.ts";
import { getMessages, getThread, type ThreadDetails } from "../api/routes.ts";
import { applyEvent } from "./apply_event.ts";
import type { Message } from "./messages.ts";
import { beforeLastTurn, hasMissedRun, unsaid, withDetails } from "./read_details.ts";
import { readMessages, readUser } from "./read_messages.ts";

export interface Problem {
  readonly code: string;
  readonly message: string;
}

export type Phase = "loading" | "ready" | "missing" | "failed";

const QUEUE_LOOK_MS = 400;

export class OpenThread {
  readonly id: string;
  /** Nobody has spoken in it yet: the server does not know it. */
  readonly isNew = signal(false);
  readonly phase = signal<Phase>("loading");
  readonly details = signal<ThreadDetails | null>(null);
  readonly messages = signal<readonly Message[]>([]);
  /** The task that is followed. */
  readonly run = signal<string | null>(null);
  readonly connection = signal<"open" | "lost">("open");
  /** Why the last run, or the last thing that was asked for, came to nothing. */
  readonly problem = signal<Problem | null>(null);
  /** How the last run ended, where there is something to say of it. */
  readonly finish = signal<string | null>(null);
  /** A summary is being written. */
  readonly isCompacting = signal(false);
  readonly isRunning = computed(() => this.run.value !== null);
  #closing = new AbortController();
  #following: AbortController | null = null;

  constructor(id: string, { isNew = false }: { isNew?: boolean } = {}) {
    this.id = id;
    this.isNew.value = isNew;
    if (isNew) this.phase.value = "ready";
    else void this.reload();
  }

  close(): void {
    this.#closing.abort();
    this.#following?.abort();
  }

  /** Read all of it again, and join the run that is at work. */
  async reload(): Promise<void> {
    try {
      const [details, rows] = await Promise.all([getThread(this.id, this.#closing.signal), this.#allRows()]);
      batch(() => {
        this.isNew.value = false;
        this.details.value = details;
        const known = this.messages.value;
        this.messages.value = this.#withQueued([...readMessages(rows, known), ...unsaid(known, rows)], details);
        this.phase.value = "ready";
      });
      this.#joinActive(details);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Read what is told of the thread beside its messages, and go on with a run that waited. */
  async refresh(): Promise<void> {
    if (this.isNew.value) return;
    try {
      const details = await getThread(this.id, this.#closing.signal);
      batch(() => {
        this.details.value = details;
        this.messages.value = this.#withQueued(this.messages.value, details);
      });
      if (hasMissedRun(this.messages.value, details)) await this.reload();
      else this.#joinActive(details);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.#failed(error);
    }
  }

  /** Somebody else may have spoken: read it again where the server has other news than is shown. */
  async catchUp(): Promise<void> {
    if (this.run.value !== null || this.phase.value !== "ready" || this.isNew.value) return;
    const before = this.details.value?.updated;
    await this.refresh();
    if (this.details.value?.updated !== before && this.run.value === null) await this.reload();
  }

  /** Follow a run to its end. One that others began is joined, with the conversation it stands in. */
  follow(run: string, { join = false }: { join?: boolean } = {}): void {
    if (this.run.value === run) return;
    this.#following?.abort();
    const following = new AbortController();
    this.#following = following;
    batch(() => {
      this.run.value = run;
      this.problem.value = null;
      this.finish.value = null;
      this.connection.value = "open";
    });
    void followRun(run, {
      join,
      signal: following.signal,
      onConnection: (state) => {
        this.connection.value = state;
      },
      onEvent: (event) => this.#apply(event, run),
    })
      .catch((error: unknown) => {
        this.problem.value = { code: "lost", message: error instanceof ApiError ? error.detail : String(error) };
      })
      .finally(() => {
        if (this.#following === following) this.#ended();
      });
  }

  #apply(event: AguiEvent, run: string): void {
    batch(() => {
      this.messages.value = applyEvent(this.messages.value, event, { now: Date.now(), run });
      if (event.type === "RUN_ERROR" && event.code !== "cancelled") {
        this.problem.value = { code: event.code ?? "internal", message: event.message };
      }
      if (event.type === "RUN_FINISHED") this.finish.value = event.result?.finish ?? null;
      if (event.type === "STEP_STARTED" || event.type === "STEP_FINISHED") {
        this.isCompacting.value = event.type === "STEP_STARTED" && event.stepName === "compact";
      }
    });
  }

  #ended(): void {
    this.#following = null;
    batch(() => {
      this.run.value = null;
      this.isCompacting.value = false;
      this.connection.value = "open";
    });
    if (!this.#closing.signal.aborted) void this.#settle();
  }

  /** Read what became of the run: what waits now, and what events have no place for. */
  async #settle(): Promise<void> {
    await this.refresh();
    try {
      const page = await getMessages(this.id, beforeLastTurn(this.messages.value), this.#closing.signal);
      this.messages.value = withDetails(this.messages.value, readMessages(page.messages));
    } catch {
      // Whoever looks again is told; nothing that is shown is wrong without it.
    }
  }

  #joinActive(details: ThreadDetails): void {
    if (this.#closing.signal.aborted) return;
    if (details.activeRun) this.follow(details.activeRun, { join: true });
    // What waits begins in a moment: its run is not at work yet, and nobody is told when it is.
    else if (details.queued.length) setTimeout(() => void this.refresh(), QUEUE_LOOK_MS);
  }

  #withQueued(messages: readonly Message[], details: ThreadDetails): readonly Message[] {
    const queued = (details.queued as readonly MessageRow[]).map((row) => readUser({ ...row, status: "queued" }));
    const waiting = new Set(queued.map((message) => message.id));
    const said = messages.filter((message) => !waiting.has(message.id));
    return queued.length ? [...said, ...queued] : messages;
  }

  async #allRows(): Promise<MessageRow[]> {
    const rows: MessageRow[] = [];
    for (let since: string | null = null; ; ) {
      const page = await getMessages(this.id, since, this.#closing.signal);
      rows.push(...page.messages);
      if (page.next === null) return rows;
      since = page.next;
    }
  }

  #failed(error: unknown): void {
    if (this.#closing.signal.aborted) return;
    const isMissing = error instanceof ApiError && error.status === 404;
    batch(() => {
      this.phase.value = isMissing ? "missing" : "failed";
      this.problem.value = { code: "load", message: error instanceof ApiError ? error.detail : String(error) };
    });
  }
}
