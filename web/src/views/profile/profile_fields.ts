/** The fields of a profile: those an agent's schema names, then whatever else is kept, as JSON. */

import { isDraftGroup, type DraftGroup, type Problem } from "../forms/draft.ts";
import type { Field, GroupField } from "../forms/field.ts";
import { birthKnown, birthSchema, calendarIn } from "../forms/birth_schema.ts";
import { isObject, type JsonObject } from "../forms/json.ts";
import { readSchema } from "../forms/read_schema.ts";

const BIRTH = "birth_info";

export interface Shown {
  readonly schema: JsonObject | null;
  readonly kept: JsonObject;
  readonly locale: string;
}

export function profileFields({ schema, kept, locale }: Shown, draft: DraftGroup = {}): GroupField {
  const root = readSchema(schema ? withBirth(schema, { kept, locale, draft }) : {});
  const others = Object.keys(kept).filter((name) => !root.fields.some((field) => field.name === name));
  return { ...root, fields: [...root.fields, ...others.map(jsonField)] };
}

/** What is kept, as the form shows it. */
export function profileKnown(kept: JsonObject): JsonObject {
  const birth = kept[BIRTH];
  return isObject(birth) ? { ...kept, [BIRTH]: birthKnown(birth) } : kept;
}

interface Birth {
  readonly kept: JsonObject;
  readonly locale: string;
  readonly draft: DraftGroup;
}

function withBirth(schema: JsonObject, { kept, locale, draft }: Birth): JsonObject {
  const properties = schema["properties"];
  const birth = isObject(properties) ? properties[BIRTH] : undefined;
  if (!isObject(properties) || !isObject(birth)) return schema;
  const known = isObject(kept[BIRTH]) ? kept[BIRTH] : {};
  const written = draft[BIRTH];
  const calendar = calendarIn(isDraftGroup(written) ? written["calendar"] : null);
  const asked = birthSchema(birth, { locale, known, calendar, isAsked: false });
  return { ...schema, properties: { ...properties, [BIRTH]: asked } };
}

function jsonField(name: string): Field {
  return {
    kind: "json",
    name,
    title: name,
    description: null,
    example: null,
    isRequired: false,
    initial: undefined,
    isMore: false,
  };
}

/** Which field a refusal of the server is about: `profile: birth_info.date: too short`. Null where it names none. */
export function refusedField(detail: string, root: GroupField): Problem | null {
  const [, dotted, said] = /^(?:profile: )?([\w.-]+): ([^]*)$/.exec(detail) ?? [];
  if (dotted === undefined || said === undefined) return null;
  const path = knownPath(root, dotted.split("."));
  if (!path.length) return null;
  const field = path.reduce<Field | undefined>(
    (from, name) => (from?.kind === "group" ? from.fields.find((one) => one.name === name) : undefined),
    root,
  );
  const named = field?.kind === "group" ? mentioned(field, said) : [];
  return { path: [...path, ...named], fault: "refused", limit: said };
}

/** As far as the form has fields for it; the place in a list counts as one. */
function knownPath(root: GroupField, names: readonly string[]): readonly string[] {
  const path: string[] = [];
  let field: Field = root;
  for (const name of names) {
    if (field.kind === "list" && /^\d+$/.test(name)) return [...path, name];
    const found: Field | undefined = field.kind === "group" ? field.fields.find((one) => one.name === name) : undefined;
    if (!found) break;
    path.push(name);
    field = found;
  }
  return path;
}

/** The first of its fields that the words quote. */
function mentioned(group: GroupField, said: string): readonly string[] {
  const quoted = [...said.matchAll(/[`"'](\w+)[`"']/g)].map((match) => match[1]);
  const name = quoted.find((one) => group.fields.some((field) => field.name === one));
  return name === undefined ? [] : [name];
}
