/** What a person is about to say to a call that waits: words, other arguments. It stays while anything goes wrong. */

import { signal } from "@preact/signals";

import type { Decision } from "../../conversation/actions.ts";
import { draftOf } from "../forms/draft.ts";
import type { GroupField } from "../forms/field.ts";
import { fieldOfObject } from "../forms/field_of_value.ts";
import { FormState } from "../forms/form_state.ts";
import { isObject, parseJson, type JsonObject } from "../forms/json.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";

export type Interrupt = NonNullable<OpenThread["details"]["value"]>["interrupts"][number];

/** The name of the one field of arguments that no form can be made of. */
const WHOLE = "arguments";

export class ApprovalState {
  readonly id: string;
  readonly words = signal("");
  /** Filled in while the arguments are changed. */
  readonly form = signal<FormState | null>(null);
  readonly #text: string;

  constructor(interrupt: Interrupt) {
    this.id = interrupt.id;
    this.#text = interrupt.arguments;
  }

  changeArguments(title: string): void {
    const given = parseJson(this.#text);
    const isDrawn = isObject(given) && Object.keys(given).length > 0;
    const root = isDrawn ? fieldOfObject(given) : wholeOf(title);
    const form = new FormState(() => root, isDrawn ? given : {});
    if (!isDrawn) form.change([WHOLE], draftOf(root.fields[0] as GroupField["fields"][number], given ?? {}));
    this.form.value = form;
  }

  keepArguments(): void {
    this.form.value = null;
  }

  /** Null where the changed arguments cannot be read: the form then says why. */
  approval(): Decision | null {
    const form = this.form.value;
    if (form === null) return this.#decision({ approved: true });
    const read = form.read();
    if (read === null) return null;
    const changed = form.root.value.name === WHOLE ? read[WHOLE] : read;
    return this.#decision({ approved: true, arguments: changed });
  }

  denial(isExpired: boolean): Decision {
    if (isExpired) return { interruptId: this.id, status: "cancelled" };
    return this.#decision({ approved: false });
  }

  #decision(payload: { approved: boolean; arguments?: JsonObject[string] | undefined }): Decision {
    const message = this.words.value.trim();
    return { interruptId: this.id, status: "resolved", payload: { ...payload, ...(message ? { message } : {}) } };
  }
}

function wholeOf(title: string): GroupField {
  const common = { title, description: null, example: null, isRequired: true, initial: undefined, isMore: false };
  return { ...common, kind: "group", name: WHOLE, fields: [{ ...common, kind: "json", name: WHOLE }] };
}
