/** Unanswered calls of a thread and the user's answers. An answer is kept until the server has accepted it. */

import { computed, signal } from "@preact/signals";

import type { Agent } from "../../api/routes.ts";
import { answerCalls, decide, type Decision } from "../../conversation/actions.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { notify } from "../../state/toasts.ts";
import { draftOf, FormState } from "../forms/draft.ts";
import type { GroupField, JsonField } from "../forms/field.ts";
import { isObject, type Json, parseJson } from "../forms/json.ts";
import { fieldOfObject } from "../forms/read_schema.ts";

export type Interrupt = NonNullable<OpenThread["details"]["value"]>["interrupts"][number];

/** Name of the single JSON field that stands for arguments which are not an object with keys. */
const WHOLE = "arguments";

export class ApprovalState {
  readonly id: string;
  readonly note = signal("");
  /** The form for the arguments while they are edited. */
  readonly form = signal<FormState | null>(null);
  readonly #text: string;

  constructor(interrupt: Interrupt) {
    this.id = interrupt.id;
    this.#text = interrupt.arguments;
  }

  editArguments(title: string): void {
    const value = parseJson(this.#text);
    if (isObject(value) && Object.keys(value).length > 0) {
      this.form.value = new FormState(fieldOfObject(value), value);
      return;
    }
    const common = { title, description: null, example: null, isRequired: true, initial: undefined, isAdvanced: false };
    const field: JsonField = { ...common, kind: "json", name: WHOLE };
    const root: GroupField = { ...common, kind: "group", name: WHOLE, fields: [field] };
    this.form.value = new FormState(root);
    this.form.value.change([WHOLE], draftOf(field, value ?? {}));
  }

  discardEdits(): void {
    this.form.value = null;
  }

  /** Return the approval, or null if the edited arguments are invalid. The form then shows the errors. */
  approval(): Decision | null {
    const form = this.form.value;
    if (form === null) return this.#decision({ approved: true });
    const value = form.read();
    if (value === null) return null;
    return this.#decision({ approved: true, arguments: form.root.name === WHOLE ? value[WHOLE] : value });
  }

  denial(isExpired: boolean): Decision {
    if (isExpired) return { interruptId: this.id, status: "cancelled" };
    return this.#decision({ approved: false });
  }

  #decision(payload: { approved: boolean; arguments?: Json | undefined }): Decision {
    const message = this.note.value.trim();
    return { interruptId: this.id, status: "resolved", payload: { ...payload, ...(message ? { message } : {}) } };
  }
}

export type PendingCall = NonNullable<OpenThread["details"]["value"]>["pendingCalls"][number];

export class InterruptState {
  readonly problem = signal<string | null>(null);
  readonly isSending = signal(false);
  /** Answers that wait for the other forms, by call id. */
  readonly answers = signal<ReadonlyMap<string, string>>(new Map());
  /** Ids that the server has accepted. The thread's details may not show that yet. */
  readonly #settled = signal<ReadonlySet<string>>(new Set());
  readonly #approvals = new Map<string, ApprovalState>();
  readonly #thread: OpenThread;

  readonly interrupts = computed(() =>
    (this.#thread.details.value?.interrupts ?? []).filter((interrupt) => !this.#settled.value.has(interrupt.id)),
  );
  readonly calls = computed(() =>
    (this.#thread.details.value?.pendingCalls ?? []).filter((call) => !this.#settled.value.has(call.id)),
  );
  /** True during a run or a request: answers cannot be sent then. */
  readonly isLocked = computed(() => this.isSending.value || this.#thread.isRunning.value);

  constructor(thread: OpenThread) {
    this.#thread = thread;
  }

  approvalOf(interrupt: Interrupt): ApprovalState {
    const approval = this.#approvals.get(interrupt.id) ?? new ApprovalState(interrupt);
    this.#approvals.set(interrupt.id, approval);
    return approval;
  }

  async decide(interrupts: readonly Interrupt[], decisions: readonly Decision[]): Promise<boolean> {
    const run = interrupts.at(-1)?.runId;
    if (run === undefined || this.isLocked.value) return false;
    const ids = interrupts.map((interrupt) => interrupt.id);
    return await this.#send(ids, () => decide(this.#thread, run, decisions));
  }

  /** Store an answer. Once every form has one, send them all. */
  async answer(agent: Agent | null, forms: readonly PendingCall[], call: PendingCall, content: string): Promise<boolean> {
    this.answers.value = new Map([...this.answers.value, [call.id, content]]);
    const answers = new Map([...this.answers.value].filter(([id]) => forms.some((form) => form.id === id)));
    if (answers.size < forms.length || this.isLocked.value) return false;
    const isAccepted = await this.#send([...answers.keys()], () => answerCalls(this.#thread, agent, answers));
    if (!isAccepted) this.removeAnswer(call.id);
    return isAccepted;
  }

  removeAnswer(call: string): void {
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
      // Show the problem beside the calls, or as a toast if none are left after the reload.
      const problem = this.#thread.problem.value?.message ?? "";
      this.#thread.problem.value = null;
      this.problem.value = problem;
      await this.#thread.reload();
      if (!this.interrupts.value.length && !this.calls.value.length) notify(problem);
      return false;
    } finally {
      this.isSending.value = false;
    }
  }
}
