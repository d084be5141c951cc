/** What a form holds while it is filled in, and what it comes to: a value, or what is wrong with it and where. */

import type { ChoiceField, ChoicesField, Field, GroupField, ListField, NumberField, TextField } from "./field.ts";
import { isObject, parseJson, type Json } from "./json.ts";

/** Text as it is typed; of choices the JSON of what is chosen; null where nobody has said anything. */
export type Draft = string | boolean | null | readonly string[] | DraftGroup;
export interface DraftGroup {
  readonly [name: string]: Draft;
}

export type Fault =
  | "missing"
  | "short"
  | "long"
  | "pattern"
  | "date"
  | "time"
  | "email"
  | "uri"
  | "number"
  | "whole"
  | "least"
  | "most"
  | "above"
  | "below"
  | "few"
  | "many"
  | "json"
  | "refused";

export interface Problem {
  readonly path: readonly string[];
  readonly fault: Fault;
  /** The limit that was broken, or the server's words. */
  readonly limit: string;
}

/** `value` undefined: it is left out. */
export interface Reading {
  readonly value: Json | undefined;
  readonly problems: readonly Problem[];
}

/** A field filled with a value; one that does not fit it leaves the field as it is by itself. */
export function draftOf(field: Field, value: Json | undefined = field.initial): Draft {
  switch (field.kind) {
    case "text":
      return textDraft(field, value);
    case "number":
      return typeof value === "number" ? String(value) : "";
    case "flag":
      return typeof value === "boolean" ? value : null;
    case "choice":
      return known(field.options, value) ?? "";
    case "choices":
      return listed(value).flatMap((item) => known(field.options, item) ?? []);
    case "list":
      return listed(value).map((item) => String(draftOf(field.item, item)));
    case "group": {
      const object = isObject(value) ? value : {};
      return Object.fromEntries(field.fields.map((one) => [one.name, draftOf(one, object[one.name] ?? one.initial)]));
    }
    case "json":
      return value === undefined || value === null ? "" : JSON.stringify(value, null, 2);
  }
}

export function readDraft(field: Field, draft: Draft | undefined, path: readonly string[] = []): Reading {
  switch (field.kind) {
    case "text":
      return readText(field, textIn(draft), path);
    case "number":
      return readNumber(field, textIn(draft), path);
    case "flag":
      return typeof draft === "boolean" ? right(draft) : field.isRequired ? right(false) : right(undefined);
    case "choice":
      return readChoice(field, textIn(draft), path);
    case "choices":
      return counted(field, itemsIn(draft).map((item) => parseJson(item) as Json), path);
    case "list":
      return readList(field, itemsIn(draft), path);
    case "group":
      return readGroup(field, isDraftGroup(draft) ? draft : {}, path);
    case "json":
      return readJson(field, textIn(draft), path);
  }
}

function readText(field: TextField, text: string, path: readonly string[]): Reading {
  if (text === "" && field.takesEmpty) return right("");
  if (text.trim() === "") return nothing(field, path);
  if (field.takesObjects && /^\s*\{/.test(text)) {
    const object = parseJson(text);
    if (isObject(object)) return right(object);
  }
  const length = [...text].length;
  if (field.minLength !== null && length < field.minLength) return wrong(path, "short", field.minLength);
  if (field.maxLength !== null && length > field.maxLength) return wrong(path, "long", field.maxLength);
  if (field.pattern !== null && !matches(field.pattern, text)) return wrong(path, "pattern", field.example ?? "");
  if (!isOfFormat(field, text)) return wrong(path, field.format as Fault, "");
  return right(text);
}

function readNumber(field: NumberField, text: string, path: readonly string[]): Reading {
  if (text.trim() === "") return nothing(field, path);
  const value = Number(text);
  if (!Number.isFinite(value)) return wrong(path, "number", "");
  if (field.isWhole && !Number.isInteger(value)) return wrong(path, "whole", "");
  if (field.minimum !== null && value < field.minimum) return wrong(path, "least", field.minimum);
  if (field.maximum !== null && value > field.maximum) return wrong(path, "most", field.maximum);
  if (field.above !== null && value <= field.above) return wrong(path, "above", field.above);
  if (field.below !== null && value >= field.below) return wrong(path, "below", field.below);
  return right(value);
}

function readChoice(field: ChoiceField, text: string, path: readonly string[]): Reading {
  return text === "" ? nothing(field, path) : right(parseJson(text));
}

function readList(field: ListField, items: readonly string[], path: readonly string[]): Reading {
  const written = items.map((item, place) => ({ item, place })).filter(({ item }) => item.trim() !== "");
  const readings = written.map(({ item, place }) => readDraft(field.item, item, [...path, String(place)]));
  const problems = readings.flatMap((reading) => reading.problems);
  if (problems.length) return { value: undefined, problems };
  return counted(field, readings.map((reading) => reading.value as Json), path);
}

function counted(field: ChoicesField | ListField, items: readonly Json[], path: readonly string[]): Reading {
  if (!items.length && !field.isRequired) return right(undefined);
  const least = field.minItems ?? 0;
  if (items.length < least) return wrong(path, "few", least);
  if (field.maxItems !== null && items.length > field.maxItems) return wrong(path, "many", field.maxItems);
  return right(items);
}

/** A group that nobody has touched is left out, unless it is required: then it says what it needs. */
function readGroup(field: GroupField, draft: DraftGroup, path: readonly string[]): Reading {
  const readings = field.fields.map((one) => ({ one, reading: readDraft(one, draft[one.name], [...path, one.name]) }));
  const entries = readings.flatMap(({ one, reading }) =>
    reading.value === undefined ? [] : [[one.name, reading.value] as const],
  );
  const problems = readings.flatMap(({ reading }) => reading.problems);
  const isUntouched = !entries.length && problems.every((problem) => problem.fault === "missing");
  if (isUntouched && !field.isRequired) return right(undefined);
  return { value: Object.fromEntries(entries), problems };
}

function readJson(field: Field, text: string, path: readonly string[]): Reading {
  if (text.trim() === "") return nothing(field, path);
  const value = parseJson(text);
  return value === undefined ? wrong(path, "json", "") : right(value);
}

function textDraft(field: TextField, value: Json | undefined): string {
  if (field.takesObjects && isObject(value)) return JSON.stringify(value);
  if (typeof value !== "string") return "";
  // A browser's own field for dates shows nothing of what it cannot read: better nothing than a hidden something.
  return (field.format === "date" || field.format === "time") && !isOfFormat(field, value) ? "" : value;
}

function isOfFormat(field: TextField, text: string): boolean {
  switch (field.format) {
    case "date":
      return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text));
    case "time":
      return /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/.test(text);
    case "email":
      return /^[^\s@]+@[^\s@]+$/.test(text);
    case "uri":
      return URL.canParse(text);
    default:
      return true;
  }
}

/** A pattern that this browser cannot read is the server's to check. */
function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

function nothing(field: Field, path: readonly string[]): Reading {
  return field.isRequired ? wrong(path, "missing", "") : right(undefined);
}

function right(value: Json | undefined): Reading {
  return { value, problems: [] };
}

function wrong(path: readonly string[], fault: Fault, limit: string | number): Reading {
  return { value: undefined, problems: [{ path, fault, limit: String(limit) }] };
}

function known(options: ChoiceField["options"], value: Json | undefined): string | null {
  const text = JSON.stringify(value);
  return options.some((option) => JSON.stringify(option.value) === text) ? text : null;
}

function listed(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function textIn(draft: Draft | undefined): string {
  return typeof draft === "string" ? draft : "";
}

function itemsIn(draft: Draft | undefined): readonly string[] {
  return Array.isArray(draft) ? draft : [];
}

export function isDraftGroup(draft: Draft | undefined): draft is DraftGroup {
  return typeof draft === "object" && draft !== null && !Array.isArray(draft);
}
