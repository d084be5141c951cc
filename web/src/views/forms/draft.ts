/** Form state: draft values with their problems, and their conversion to and from JSON. */

import { signal, type Signal } from "@preact/signals";

import type { ChoiceField, ChoicesField, Field, GroupField, ListField, NumberField, TextField } from "./field.ts";
import { isObject, type Json, type JsonObject, parseJson } from "./json.ts";

/** Text as typed, the JSON of a selected option, or null for an untouched flag. */
export type Draft = string | boolean | null | readonly string[] | DraftGroup;
export interface DraftGroup {
  readonly [name: string]: Draft;
}

export type ErrorCode =
  | "required"
  | "minLength"
  | "maxLength"
  | "pattern"
  | "date"
  | "time"
  | "email"
  | "uri"
  | "number"
  | "integer"
  | "minimum"
  | "maximum"
  | "exclusiveMinimum"
  | "exclusiveMaximum"
  | "minItems"
  | "maxItems"
  | "json"
  | "server";

export interface Problem {
  readonly path: readonly string[];
  readonly code: ErrorCode;
  /** The limit, or the message of the server. */
  readonly limit: string;
}

/** An undefined `value` is left out of the object. */
export interface Reading {
  readonly value: Json | undefined;
  readonly problems: readonly Problem[];
}

/** Return the draft of a value. A value that does not fit the field gives an empty draft. */
export function draftOf(field: Field, value: Json | undefined = field.initial): Draft {
  switch (field.kind) {
    case "text":
      return textDraft(field, value);
    case "number":
      return typeof value === "number" ? String(value) : "";
    case "flag":
      return typeof value === "boolean" ? value : null;
    case "choice":
      return optionDraft(field.options, value) ?? "";
    case "choices":
      return arrayOf(value).flatMap((item) => optionDraft(field.options, item) ?? []);
    case "list":
      return arrayOf(value).map((item) => String(draftOf(field.item, item)));
    case "group": {
      const object = isObject(value) ? value : {};
      return Object.fromEntries(field.fields.map((child) => [child.name, draftOf(child, object[child.name] ?? child.initial)]));
    }
    case "json":
      return value === undefined || value === null ? "" : JSON.stringify(value, null, 2);
  }
}

export function readDraft(field: Field, draft: Draft | undefined, path: readonly string[] = []): Reading {
  switch (field.kind) {
    case "text":
      return readText(field, asText(draft), path);
    case "number":
      return readNumber(field, asText(draft), path);
    case "flag":
      return typeof draft === "boolean" ? valid(draft) : field.isRequired ? valid(false) : valid(undefined);
    case "choice":
      return draft ? valid(parseJson(asText(draft))) : readEmpty(field, path);
    case "choices":
      return readItems(field, asItems(draft).map((item) => parseJson(item) as Json), path);
    case "list":
      return readList(field, asItems(draft), path);
    case "group":
      return readGroup(field, isDraftGroup(draft) ? draft : {}, path);
    case "json":
      return readJson(field, asText(draft), path);
  }
}

function readText(field: TextField, text: string, path: readonly string[]): Reading {
  if (text === "" && field.allowsEmpty) return valid("");
  if (text.trim() === "") return readEmpty(field, path);
  if (field.allowsObjects && /^\s*\{/.test(text)) {
    const object = parseJson(text);
    if (isObject(object)) return valid(object);
  }
  const length = [...text].length;
  if (field.minLength !== null && length < field.minLength) return invalid(path, "minLength", field.minLength);
  if (field.maxLength !== null && length > field.maxLength) return invalid(path, "maxLength", field.maxLength);
  if (field.pattern !== null && !matches(field.pattern, text)) return invalid(path, "pattern", field.example ?? "");
  if (!isOfFormat(field, text)) return invalid(path, field.format as ErrorCode, "");
  return valid(text);
}

function readNumber(field: NumberField, text: string, path: readonly string[]): Reading {
  if (text.trim() === "") return readEmpty(field, path);
  const value = Number(text);
  if (!Number.isFinite(value)) return invalid(path, "number", "");
  if (field.isInteger && !Number.isInteger(value)) return invalid(path, "integer", "");
  if (field.minimum !== null && value < field.minimum) return invalid(path, "minimum", field.minimum);
  if (field.maximum !== null && value > field.maximum) return invalid(path, "maximum", field.maximum);
  if (field.exclusiveMinimum !== null && value <= field.exclusiveMinimum) return invalid(path, "exclusiveMinimum", field.exclusiveMinimum);
  if (field.exclusiveMaximum !== null && value >= field.exclusiveMaximum) return invalid(path, "exclusiveMaximum", field.exclusiveMaximum);
  return valid(value);
}

function readList(field: ListField, items: readonly string[], path: readonly string[]): Reading {
  const filled = items.map((item, place) => ({ item, place })).filter(({ item }) => item.trim() !== "");
  const readings = filled.map(({ item, place }) => readDraft(field.item, item, [...path, String(place)]));
  const problems = readings.flatMap((reading) => reading.problems);
  if (problems.length) return { value: undefined, problems };
  return readItems(field, readings.map((reading) => reading.value as Json), path);
}

function readItems(field: ChoicesField | ListField, items: readonly Json[], path: readonly string[]): Reading {
  if (!items.length && !field.isRequired) return valid(undefined);
  const minItems = field.minItems ?? 0;
  if (items.length < minItems) return invalid(path, "minItems", minItems);
  if (field.maxItems !== null && items.length > field.maxItems) return invalid(path, "maxItems", field.maxItems);
  return valid(items);
}

/** An untouched optional group is left out. A required child reports its required fields. */
function readGroup(field: GroupField, draft: DraftGroup, path: readonly string[]): Reading {
  const readings = field.fields.map((child) => ({ child, reading: readDraft(child, draft[child.name], [...path, child.name]) }));
  const entries = readings.flatMap(({ child, reading }) =>
    reading.value === undefined ? [] : [[child.name, reading.value] as const],
  );
  const problems = readings.flatMap(({ reading }) => reading.problems);
  const isUntouched = !entries.length && problems.every((problem) => problem.code === "required");
  if (isUntouched && !field.isRequired) return valid(undefined);
  return { value: Object.fromEntries(entries), problems };
}

function readJson(field: Field, text: string, path: readonly string[]): Reading {
  if (text.trim() === "") return readEmpty(field, path);
  const value = parseJson(text);
  return value === undefined ? invalid(path, "json", "") : valid(value);
}

function textDraft(field: TextField, value: Json | undefined): string {
  if (field.allowsObjects && isObject(value)) return JSON.stringify(value);
  if (typeof value !== "string") return "";
  // A date input hides text that it cannot parse, so that the user could not see it.
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

/** The server checks patterns that this browser cannot parse. */
function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return true;
  }
}

function readEmpty(field: Field, path: readonly string[]): Reading {
  return field.isRequired ? invalid(path, "required", "") : valid(undefined);
}

function valid(value: Json | undefined): Reading {
  return { value, problems: [] };
}

function invalid(path: readonly string[], code: ErrorCode, limit: string | number): Reading {
  return { value: undefined, problems: [{ path, code, limit: String(limit) }] };
}

function optionDraft(options: ChoiceField["options"], value: Json | undefined): string | null {
  const text = JSON.stringify(value);
  return options.some((option) => JSON.stringify(option.value) === text) ? text : null;
}

function arrayOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

function asText(draft: Draft | undefined): string {
  return typeof draft === "string" ? draft : "";
}

function asItems(draft: Draft | undefined): readonly string[] {
  return Array.isArray(draft) ? draft : [];
}

export function isDraftGroup(draft: Draft | undefined): draft is DraftGroup {
  return typeof draft === "object" && draft !== null && !Array.isArray(draft);
}

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
