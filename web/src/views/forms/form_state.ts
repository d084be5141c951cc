/** State of a form: its draft and its problems. */

import { signal, type Signal } from "@preact/signals";

import { draftOf, isDraftGroup, readDraft, type Draft, type DraftGroup, type Problem } from "./draft.ts";
import type { GroupField } from "./field.ts";
import type { JsonObject } from "./json.ts";

let nextId = 0;

export class FormState {
  readonly id = `form-${++nextId}`;
  readonly root: GroupField;
  readonly draft: Signal<DraftGroup>;
  readonly problems = signal<readonly Problem[]>([]);
  /** Counts rejections. The view then focuses the first problem. */
  readonly rejections = signal(0);

  constructor(root: GroupField, value: JsonObject = {}) {
    this.root = root;
    const draft = draftOf(root, value);
    this.draft = signal(isDraftGroup(draft) ? draft : {});
  }

  change(path: readonly string[], draft: Draft): void {
    this.draft.value = setAt(this.draft.value, path, draft) as DraftGroup;
    this.problems.value = this.problems.value.filter((problem) => !path.every((name, place) => problem.path[place] === name));
  }

  /** Return the value, or null after reporting its problems. */
  read(): JsonObject | null {
    const { value, problems } = readDraft({ ...this.root, isRequired: true }, this.draft.value);
    if (problems.length) this.reject(problems);
    else this.problems.value = [];
    return problems.length ? null : ((value ?? {}) as JsonObject);
  }

  reject(problems: readonly Problem[]): void {
    this.problems.value = problems;
    this.rejections.value += 1;
  }

  problemAt(path: readonly string[]): Problem | null {
    const key = idOf(this.id, path);
    return this.problems.value.find((problem) => idOf(this.id, problem.path) === key) ?? null;
  }
}

export function idOf(form: string, path: readonly string[]): string {
  return [form, ...path.map(encodeURIComponent)].join("-");
}

function setAt(draft: Draft | undefined, path: readonly string[], value: Draft): Draft {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  const group = isDraftGroup(draft) ? draft : {};
  return { ...group, [name]: setAt(group[name], rest, value) };
}
