/** A thread on the page: its messages, its active run and its interrupts. Actions change it. */

import { batch, computed, signal } from "@preact/signals";

import type { AguiEvent, MessageRow } from "../api/agui.ts";
import { followRun } from "../api/event_stream.ts";
import { ApiError } from "../api/request.ts";
import { getMessages, getThread, type ThreadDetails } from "../api/routes.ts";
import { applyEvent } from "./apply_event.ts";
import type { Message } from "./messages.ts";
import { hasMissedRun, lastTurnCursor, mergeDetails, readMessages, readUser, unsentMessages } from "./read_messages.ts";

export interface Problem {
  readonly code: string;
  readonly message: string;
}

type Phase = "loading" | "ready" | "missing" | "failed";

const QUEUE_POLL_MS = 400;

export class OpenThread {
  readonly id: string;
  /** True until the first message. The server does not have the thread until then. */
  readonly isNew = signal(false);
  readonly phase = signal<Phase>("loading");
  readonly details = signal<ThreadDetails | null>(null);
  readonly messages = signal<readonly Message[]>([]);
  /** Task id of the run that the page follows. */
  readonly run = signal<string | null>(null);
  readonly connection = signal<"open" | "lost">("open");
  /** Error of the last run or request. */
  readonly problem = signal<Problem | null>(null);
  /** Finish reason of the last run, if it is worth a message. */
  readonly finish = signal<string | null>(null);
  /** True while the server writes a summary. */
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

  /** Load the whole thread and join its active run. */
  async reload(): Promise<void> {
    try {
      const [details, rows] = await Promise.all([getThread(this.id, this.#closing.signal), this.#loadRows()]);
      batch(() => {
        this.isNew.value = false;
        this.details.value = details;
        const previous = this.messages.value;
        this.messages.value = this.#appendQueued([...readMessages(rows, previous), ...unsentMessages(previous, rows)], details);
        this.phase.value = "ready";
      });
      this.#joinActive(details);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Load the details of the thread and join a run that has started. */
  async refresh(): Promise<void> {
    if (this.isNew.value) return;
    try {
      const details = await getThread(this.id, this.#closing.signal);
      batch(() => {
        this.details.value = details;
        this.messages.value = this.#appendQueued(this.messages.value, details);
      });
      if (hasMissedRun(this.messages.value, details)) await this.reload();
      else this.#joinActive(details);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.#fail(error);
    }
  }

  /** Reload the thread if the server has a newer version. */
  async catchUp(): Promise<void> {
    if (this.run.value !== null || this.phase.value !== "ready" || this.isNew.value) return;
    const before = this.details.value?.updated;
    await this.refresh();
    if (this.details.value?.updated !== before && this.run.value === null) await this.reload();
  }

  /** Follow a run to its end. `join` starts with a snapshot, for runs that this page did not start. */
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
        if (this.#following === following) this.#finishRun();
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

  #finishRun(): void {
    this.#following = null;
    batch(() => {
      this.run.value = null;
      this.isCompacting.value = false;
      this.connection.value = "open";
    });
    if (!this.#closing.signal.aborted) void this.#loadResults();
  }

  /** Load what events do not contain, such as interrupts and file ids. */
  async #loadResults(): Promise<void> {
    await this.refresh();
    try {
      const page = await getMessages(this.id, lastTurnCursor(this.messages.value), this.#closing.signal);
      this.messages.value = mergeDetails(this.messages.value, readMessages(page.messages));
    } catch {
      // The page is correct without the details, and the next refresh retries.
    }
  }

  #joinActive(details: ThreadDetails): void {
    if (this.#closing.signal.aborted) return;
    if (details.activeRun) this.follow(details.activeRun, { join: true });
    // A queued run starts soon, but no event reports that.
    else if (details.queued.length) setTimeout(() => void this.refresh(), QUEUE_POLL_MS);
  }

  #appendQueued(messages: readonly Message[], details: ThreadDetails): readonly Message[] {
    const queued = (details.queued as readonly MessageRow[]).map((row) => readUser({ ...row, status: "queued" }));
    const queuedIds = new Set(queued.map((message) => message.id));
    const rest = messages.filter((message) => !queuedIds.has(message.id));
    return queued.length ? [...rest, ...queued] : messages;
  }

  async #loadRows(): Promise<MessageRow[]> {
    const rows: MessageRow[] = [];
    for (let since: string | null = null; ; ) {
      const page = await getMessages(this.id, since, this.#closing.signal);
      rows.push(...page.messages);
      if (page.next === null) return rows;
      since = page.next;
    }
  }

  #fail(error: unknown): void {
    if (this.#closing.signal.aborted) return;
    const isMissing = error instanceof ApiError && error.status === 404;
    batch(() => {
      this.phase.value = isMissing ? "missing" : "failed";
      this.problem.value = { code: "load", message: error instanceof ApiError ? error.detail : String(error) };
    });
  }
}
