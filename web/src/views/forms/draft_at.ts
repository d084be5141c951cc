/** What a form holds at a path. */

import { isDraftGroup, type Draft } from "./draft.ts";

export function draftAt(draft: Draft, path: readonly string[]): Draft {
  return path.reduce<Draft>((from, name) => (isDraftGroup(from) ? (from[name] ?? null) : null), draft);
}
