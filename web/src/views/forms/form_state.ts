/** A form while it is filled in: its fields, what was written, and what is wrong with it. Nothing here is drawn. */

import { computed, signal, type ReadonlySignal } from "@preact/signals";

import { draftOf, isDraftGroup, readDraft, type Draft, type DraftGroup, type Problem } from "./draft.ts";
import type { GroupField } from "./field.ts";
import type { JsonObject } from "./json.ts";

let count = 0;

export class FormState {
  readonly id = `form-${++count}`;
  /** The fields may depend on what was written, such as a leap month on the calendar. */
  readonly root: ReadonlySignal<GroupField>;
  readonly draft = signal<DraftGroup>({});
  readonly problems = signal<readonly Problem[]>([]);
  /** Grows when something was wrong: whoever draws the form then brings the focus there. */
  readonly refusals = signal(0);

  constructor(fieldsOf: (draft: DraftGroup) => GroupField, known: JsonObject = {}) {
    this.root = computed(() => fieldsOf(this.draft.value));
    this.fill(known);
  }

  /** Twice: what is known may bring other fields, which are then filled too. */
  fill(known: JsonObject): void {
    for (let round = 0; round < 2; round += 1) {
      const draft = draftOf(this.root.peek(), known);
      this.draft.value = isDraftGroup(draft) ? draft : {};
    }
    this.problems.value = [];
  }

  change(path: readonly string[], draft: Draft): void {
    this.draft.value = put(this.draft.value, path, draft) as DraftGroup;
    this.problems.value = this.problems.value.filter((problem) => !startsWith(problem.path, path));
  }

  /** What it comes to; null where something is wrong, which is then told. */
  read(): JsonObject | null {
    const { value, problems } = readDraft({ ...this.root.value, isRequired: true }, this.draft.value);
    if (problems.length) this.refuse(problems);
    else this.problems.value = [];
    return problems.length ? null : ((value ?? {}) as JsonObject);
  }

  refuse(problems: readonly Problem[]): void {
    this.problems.value = problems;
    this.refusals.value += 1;
  }

  problemAt(path: readonly string[]): Problem | null {
    const key = idOf(this.id, path);
    return this.problems.value.find((problem) => idOf(this.id, problem.path) === key) ?? null;
  }
}

export function idOf(form: string, path: readonly string[]): string {
  return [form, ...path.map(encodeURIComponent)].join("-");
}

function put(draft: Draft | undefined, path: readonly string[], value: Draft): Draft {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  const group = isDraftGroup(draft) ? draft : {};
  return { ...group, [name]: put(group[name], rest, value) };
}

function startsWith(path: readonly string[], start: readonly string[]): boolean {
  return start.every((name, place) => path[place] === name);
}
