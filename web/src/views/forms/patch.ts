/** The merge patch (RFC 7396) that brings what was kept to what a form says. What the form does not ask for stays. */

import type { GroupField } from "./field.ts";
import { isObject, isSame, type Json, type JsonObject } from "./json.ts";

export function patchOf(field: GroupField, before: JsonObject, after: JsonObject): JsonObject {
  const changes = field.fields.flatMap((one): [string, Json][] => {
    const [was, is] = [before[one.name], after[one.name]];
    if (isSame(was ?? undefined, is)) return [];
    if (one.kind === "group" && isObject(was) && (isObject(is) || holdsMore(one, was))) {
      const inner = patchOf(one, was, isObject(is) ? is : {});
      return Object.keys(inner).length ? [[one.name, inner]] : [];
    }
    // A text that was kept empty is shown as nothing: that is no change.
    if (is === undefined && isNothing(was)) return [];
    return [[one.name, is ?? null]];
  });
  return Object.fromEntries(changes);
}

function holdsMore(field: GroupField, value: JsonObject): boolean {
  return Object.keys(value).some((name) => !field.fields.some((one) => one.name === name));
}

function isNothing(value: Json | undefined): boolean {
  return value === undefined || value === null || value === "" || (Array.isArray(value) && !value.length);
}
