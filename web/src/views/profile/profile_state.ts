/** Profile of the user and its form. Saving sends only the fields that changed. */

import { signal } from "@preact/signals";

import { ApiError } from "../../api/request.ts";
import { type Agent, changeProfile, getProfile, type Profile } from "../../api/routes.ts";
import { FormState, type Problem } from "../forms/draft.ts";
import type { Field, GroupField } from "../forms/field.ts";
import { isEqual, isObject, type Json, type JsonObject } from "../forms/json.ts";
import { readSchema } from "../forms/read_schema.ts";

type SaveResult = "saved" | "unchanged" | "rejected";

export class ProfileState {
  readonly profile = signal<Profile | null>(null);
  /** The agent whose schema decides the fields of the form. */
  readonly agent = signal<Agent | null>(null);
  readonly form = signal<FormState | null>(null);
  readonly problem = signal<string | null>(null);
  readonly isBusy = signal(false);

  get values(): JsonObject {
    return (this.profile.value?.profile ?? {}) as JsonObject;
  }

  selectAgent(agent: Agent | null): void {
    if (agent === this.agent.value) return;
    this.agent.value = agent;
    this.#resetForm();
  }

  async load(): Promise<void> {
    await this.#request(getProfile);
  }

  async save(): Promise<SaveResult> {
    const form = this.form.value;
    const value = form?.read();
    if (!form || !value) return "rejected";
    const patch = patchOf(form.root, this.values, value);
    if (!Object.keys(patch).length) return "unchanged";
    return (await this.change(patch)) ? "saved" : "rejected";
  }

  async change(patch: JsonObject): Promise<boolean> {
    return await this.#request(() => changeProfile(patch, this.agent.value?.name ?? null));
  }

  #resetForm(): void {
    if (this.profile.value === null) return;
    const schema = (this.agent.value?.profileSchema ?? null) as JsonObject | null;
    this.form.value = new FormState(profileFields(schema, this.values), this.values);
  }

  async #request(send: () => Promise<Profile>): Promise<boolean> {
    this.problem.value = null;
    this.isBusy.value = true;
    try {
      this.profile.value = await send();
      this.#resetForm();
      return true;
    } catch (error) {
      this.#showError(error);
      return false;
    } finally {
      this.isBusy.value = false;
    }
  }

  /** Show the error at the field that the server named, or above the save button. */
  #showError(error: unknown): void {
    const detail = error instanceof ApiError ? error.detail : String(error);
    const form = this.form.value;
    const isInvalid = error instanceof ApiError && error.status === 422;
    const problem = form && isInvalid ? fieldProblem(detail, form.root) : null;
    if (form && problem) form.reject([problem]);
    else this.problem.value = detail;
  }
}

/** Return the fields of an agent's schema, then a JSON field for every other stored value. */
export function profileFields(schema: JsonObject | null, values: JsonObject): GroupField {
  const root = readSchema(schema);
  const others = Object.keys(values).filter((name) => !root.fields.some((field) => field.name === name));
  const common = { description: null, example: null, isRequired: false, initial: undefined, isAdvanced: false };
  return { ...root, fields: [...root.fields, ...others.map((name): Field => ({ ...common, kind: "json", name, title: name }))] };
}

/** Find the field that a server error names, such as `profile: address.city: too short`. Return null if none. */
export function fieldProblem(detail: string, root: GroupField): Problem | null {
  const [, dotted, message] = /^(?:profile: )?([\w.-]+): ([^]*)$/.exec(detail) ?? [];
  if (dotted === undefined || message === undefined) return null;
  const path: string[] = [];
  let field: Field = root;
  for (const name of dotted.split(".")) {
    if (field.kind === "list" && /^\d+$/.test(name)) {
      path.push(name);
      break;
    }
    const child: Field | undefined = field.kind === "group" ? field.fields.find((one) => one.name === name) : undefined;
    if (!child) break;
    path.push(name);
    field = child;
  }
  if (!path.length) return null;
  // An error of a group often quotes the name of one of its fields.
  const fields = field.kind === "group" ? field.fields : [];
  const quotes = [...message.matchAll(/[`"'](\w+)[`"']/g)].map((match) => match[1]);
  const name = quotes.find((quote) => fields.some((one) => one.name === quote));
  return { path: name === undefined ? path : [...path, name], code: "server", limit: message };
}

export function patchOf(field: GroupField, before: JsonObject, after: JsonObject): JsonObject {
  const changes = field.fields.flatMap((one): [string, Json][] => {
    const [was, is] = [before[one.name], after[one.name]];
    if (isEqual(was ?? undefined, is)) return [];
    if (one.kind === "group" && isObject(was)) {
      const hasOtherKeys = Object.keys(was).some((name) => !one.fields.some((child) => child.name === name));
      if (isObject(is) || hasOtherKeys) {
        const inner = patchOf(one, was, isObject(is) ? is : {});
        return Object.keys(inner).length ? [[one.name, inner]] : [];
      }
    }
    // An empty stored value looks like an empty field, so it is not a change.
    if (is === undefined && isEmptyValue(was)) return [];
    return [[one.name, is ?? null]];
  });
  return Object.fromEntries(changes);
}

function isEmptyValue(value: Json | undefined): boolean {
  return value === undefined || value === null || value === "" || (Array.isArray(value) && !value.length);
}
