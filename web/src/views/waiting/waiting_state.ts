/** What waits for a person in a thread, and what they have said to it so far. Nothing is lost until the server has it. */

import { computed, signal } from "@preact/signals";

import type { Agent } from "../../api/routes.ts";
import { answerCalls, decide, type Decision } from "../../conversation/actions.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { notify } from "../../state/notices.ts";
import { ApprovalState, type Interrupt } from "./approval_state.ts";

export type PendingCall = NonNullable<OpenThread["details"]["value"]>["pendingCalls"][number];

export class WaitingState {
  /** What the server said no to. */
  readonly problem = signal<string | null>(null);
  readonly isSending = signal(false);
  /** Answers that wait for those of other forms, by call. */
  readonly answers = signal<ReadonlyMap<string, string>>(new Map());
  /** What the server has; the thread's details may be older than that. */
  readonly #settled = signal<ReadonlySet<string>>(new Set());
  readonly #approvals = new Map<string, ApprovalState>();
  readonly #thread: OpenThread;

  readonly interrupts = computed(() =>
    (this.#thread.details.value?.interrupts ?? []).filter((one) => !this.#settled.value.has(one.id)),
  );
  readonly calls = computed(() =>
    (this.#thread.details.value?.pendingCalls ?? []).filter((call) => !this.#settled.value.has(call.id)),
  );

  constructor(thread: OpenThread) {
    this.#thread = thread;
  }

  /** Nothing can be answered while a run is at work, or an answer on its way. */
  readonly isHeld = computed(() => this.isSending.value || this.#thread.isRunning.value);

  approvalOf(interrupt: Interrupt): ApprovalState {
    const known = this.#approvals.get(interrupt.id) ?? new ApprovalState(interrupt);
    this.#approvals.set(interrupt.id, known);
    return known;
  }

  async decide(interrupts: readonly Interrupt[], decisions: readonly Decision[]): Promise<boolean> {
    const run = interrupts.at(-1)?.runId;
    if (run === undefined || this.isHeld.value) return false;
    const ids = interrupts.map((interrupt) => interrupt.id);
    return await this.#send(ids, () => decide(this.#thread, run, decisions));
  }

  /** Keep an answer; the last one that is missing sends them all. */
  async answer(agent: Agent | null, forms: readonly PendingCall[], call: PendingCall, content: string): Promise<boolean> {
    this.answers.value = new Map([...this.answers.value, [call.id, content]]);
    const given = new Map([...this.answers.value].filter(([id]) => forms.some((one) => one.id === id)));
    if (given.size < forms.length || this.isHeld.value) return false;
    const isTaken = await this.#send([...given.keys()], () => answerCalls(this.#thread, agent, given));
    if (!isTaken) this.takeBack(call.id);
    return isTaken;
  }

  takeBack(call: string): void {
    this.answers.value = new Map([...this.answers.value].filter(([id]) => id !== call));
  }

  async #send(ids: readonly string[], send: () => Promise<boolean>): Promise<boolean> {
    this.problem.value = null;
    this.isSending.value = true;
    try {
      if (await send()) {
        this.#settled.value = new Set([...this.#settled.value, ...ids]);
        return true;
      }
      await this.#refused();
      return false;
    } finally {
      this.isSending.value = false;
    }
  }

  /** It is said here, beside what it is about; where that waits no more, at the edge of the page. */
  async #refused(): Promise<void> {
    const said = this.#thread.problem.value?.message ?? "";
    this.#thread.problem.value = null;
    this.problem.value = said;
    await this.#thread.reload();
    if (!this.interrupts.value.length && !this.calls.value.length) notify(said);
  }
}
