/** A JSON Schema as fields of a form. What it cannot draw is a field of JSON: nothing is left out. */

import type { Common, Field, GroupField, NumberField, Option, TextField, TextFormat } from "./field.ts";
import { isObject, type Json, type JsonObject } from "./json.ts";

/** Deeper ones, and those that stand in themselves, are written as JSON. */
const DEEPEST = 6;
const LONG = 300;
const FORMATS: Readonly<Record<string, TextFormat>> = {
  date: "date",
  time: "time",
  email: "email",
  uri: "uri",
  url: "uri",
  textarea: "long",
};

interface Place {
  readonly root: JsonObject;
  readonly depth: number;
}

/** The object that a schema describes, as a group. */
export function readSchema(schema: unknown): GroupField {
  const root = isObject(schema) ? schema : {};
  return readGroup("", root, commonOf("", root, true), { root, depth: 0 });
}

function readField(name: string, given: Json | undefined, isRequired: boolean, place: Place): Field {
  const schema = withoutNull(resolved(given, place.root), place.root);
  const common = commonOf(name, schema, isRequired);
  const options = optionsOf(schema);
  if (options) return { ...common, kind: "choice", options };
  const deeper = { ...place, depth: place.depth + 1 };
  switch (typeOf(schema)) {
    case "string":
      return readText(schema, common);
    case "integer":
    case "number":
      return readNumber(schema, common);
    case "boolean":
      return { ...common, kind: "flag" };
    case "array":
      return readArray(schema, common, deeper);
    case "object":
      return place.depth < DEEPEST && isObject(schema["properties"])
        ? readGroup(name, schema, common, deeper)
        : { ...common, kind: "json" };
    default:
      return { ...common, kind: "json" };
  }
}

function readGroup(_name: string, schema: JsonObject, common: Common, place: Place): GroupField {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? (schema["required"] as readonly Json[]) : [];
  const fields = Object.entries(properties).map(([name, one]) => readField(name, one, required.includes(name), place));
  return { ...common, kind: "group", fields };
}

function readText(schema: JsonObject, common: Common): TextField {
  const maxLength = numberAt(schema, "maxLength");
  const format = FORMATS[textAt(schema, "format") ?? ""] ?? ((maxLength ?? 0) > LONG ? "long" : "text");
  return {
    ...common,
    kind: "text",
    format,
    minLength: numberAt(schema, "minLength"),
    maxLength,
    pattern: textAt(schema, "pattern"),
    takesEmpty: false,
    takesObjects: typesOf(schema).includes("object"),
    unknown: textAt(schema, "x-unknown"),
  };
}

function readNumber(schema: JsonObject, common: Common): NumberField {
  return {
    ...common,
    kind: "number",
    isWhole: typeOf(schema) === "integer",
    minimum: numberAt(schema, "minimum"),
    maximum: numberAt(schema, "maximum"),
    above: numberAt(schema, "exclusiveMinimum"),
    below: numberAt(schema, "exclusiveMaximum"),
  };
}

function readArray(schema: JsonObject, common: Common, place: Place): Field {
  const counts = { minItems: numberAt(schema, "minItems"), maxItems: numberAt(schema, "maxItems") };
  const item = isObject(schema["items"]) ? readField("", schema["items"], true, place) : null;
  if (item?.kind === "choice") return { ...common, kind: "choices", options: item.options, ...counts };
  if (item?.kind === "text" || item?.kind === "number") return { ...common, kind: "list", item, ...counts };
  return { ...common, kind: "json" };
}

function commonOf(name: string, schema: JsonObject, isRequired: boolean): Common {
  const examples = schema["examples"];
  const example: Json | undefined = Array.isArray(examples) ? (examples as readonly Json[])[0] : undefined;
  return {
    name,
    title: textAt(schema, "title") ?? readable(name),
    description: textAt(schema, "description"),
    example: example === undefined ? null : typeof example === "string" ? example : JSON.stringify(example),
    isRequired,
    initial: schema["default"] ?? schema["const"] ?? undefined,
    isMore: schema["x-more"] === true,
  };
}

/** `birth_date` and `birthDate` as people write them. */
export function readable(name: string): string {
  const spaced = name.replace(/[_-]+/g, " ").replace(/([a-z\d])([A-Z])/g, (_, end: string, start: string) => `${end} ${start.toLowerCase()}`);
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

function optionsOf(schema: JsonObject): Option[] | null {
  if (Array.isArray(schema["enum"])) {
    const names = isObject(schema["x-labels"]) ? schema["x-labels"] : {};
    return (schema["enum"] as readonly Json[])
      .filter((value) => value !== null)
      .map((value) => ({ value, label: String(names[String(value)] ?? labelOf(value)) }));
  }
  const kinds = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(kinds) || !kinds.length) return null;
  const named = (kinds as readonly Json[]).filter((one) => isObject(one) && "const" in one) as readonly JsonObject[];
  if (named.length !== kinds.length) return null;
  return named.map((one) => ({
    value: one["const"] as Json,
    label: textAt(one, "title") ?? labelOf(one["const"] as Json),
  }));
}

function labelOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What may be null is optional: the rest of it says what it is else. */
function withoutNull(schema: JsonObject, root: JsonObject): JsonObject {
  const kinds = schema["anyOf"] ?? schema["oneOf"];
  if (!Array.isArray(kinds)) return schema;
  const others = (kinds as readonly Json[]).map((one) => resolved(one, root)).filter((one) => one["type"] !== "null");
  const [only] = others;
  if (others.length !== 1 || !only) return schema;
  const { anyOf: _any, oneOf: _one, ...rest } = schema;
  return { ...only, ...rest };
}

/** A reference inside the schema, with what stands beside it. One that leads nowhere is anything at all. */
function resolved(given: Json | undefined, root: JsonObject): JsonObject {
  let schema = isObject(given) ? given : {};
  for (let steps = 0; typeof schema["$ref"] === "string" && steps < DEEPEST; steps += 1) {
    const { $ref, ...rest } = schema;
    const found = String($ref)
      .replace(/^#\/?/, "")
      .split("/")
      .reduce<Json | undefined>((from, name) => (isObject(from) ? from[name] : undefined), root);
    schema = isObject(found) ? { ...found, ...rest } : rest;
  }
  return schema;
}

function typesOf(schema: JsonObject): readonly Json[] {
  const type = schema["type"];
  return Array.isArray(type) ? type : type === undefined ? [] : [type];
}

/** Of several types the one that people write; of none what its keywords say. */
function typeOf(schema: JsonObject): string | null {
  const types = typesOf(schema).filter((type) => type !== "null");
  if (types.length === 1) return String(types[0]);
  if (types.includes("string") && types.every((type) => type === "string" || type === "object")) return "string";
  if (!types.length && isObject(schema["properties"])) return "object";
  return null;
}

function textAt(schema: JsonObject, name: string): string | null {
  const value = schema[name];
  return typeof value === "string" && value ? value : null;
}

function numberAt(schema: JsonObject, name: string): number | null {
  const value = schema[name];
  return typeof value === "number" ? value : null;
}
