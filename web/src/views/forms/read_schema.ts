/** Fields of a form from a JSON Schema. Schemas without a matching field become JSON fields. */

import type { Field, FieldBase, GroupField, NumberField, Option, TextField, TextFormat } from "./field.ts";
import { isObject, type Json, type JsonObject } from "./json.ts";

/** Deeper and recursive schemas become JSON fields. */
const MAX_DEPTH = 6;
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

/** Return the group of fields of an object schema. */
export function readSchema(schema: unknown): GroupField {
  const root = isObject(schema) ? schema : {};
  return readGroup(root, commonOf("", root, true), { root, depth: 0 });
}

function readField(name: string, value: Json | undefined, isRequired: boolean, place: Place): Field {
  const schema = dropNull(resolveRef(value, place.root), place.root);
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
      return place.depth < MAX_DEPTH && isObject(schema["properties"])
        ? readGroup(schema, common, deeper)
        : { ...common, kind: "json" };
    default:
      return { ...common, kind: "json" };
  }
}

function readGroup(schema: JsonObject, common: FieldBase, place: Place): GroupField {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? (schema["required"] as readonly Json[]) : [];
  const fields = Object.entries(properties).map(([name, property]) => readField(name, property, required.includes(name), place));
  return { ...common, kind: "group", fields };
}

function readText(schema: JsonObject, common: FieldBase): TextField {
  const maxLength = numberAt(schema, "maxLength");
  const format = FORMATS[textAt(schema, "format") ?? ""] ?? ((maxLength ?? 0) > LONG ? "long" : "text");
  return {
    ...common,
    kind: "text",
    format,
    minLength: numberAt(schema, "minLength"),
    maxLength,
    pattern: textAt(schema, "pattern"),
    allowsEmpty: false,
    allowsObjects: typesOf(schema).includes("object"),
  };
}

function readNumber(schema: JsonObject, common: FieldBase): NumberField {
  return {
    ...common,
    kind: "number",
    isInteger: typeOf(schema) === "integer",
    minimum: numberAt(schema, "minimum"),
    maximum: numberAt(schema, "maximum"),
    exclusiveMinimum: numberAt(schema, "exclusiveMinimum"),
    exclusiveMaximum: numberAt(schema, "exclusiveMaximum"),
  };
}

function readArray(schema: JsonObject, common: FieldBase, place: Place): Field {
  const counts = { minItems: numberAt(schema, "minItems"), maxItems: numberAt(schema, "maxItems") };
  const item = isObject(schema["items"]) ? readField("", schema["items"], true, place) : null;
  if (item?.kind === "choice") return { ...common, kind: "choices", options: item.options, ...counts };
  if (item?.kind === "text" || item?.kind === "number") return { ...common, kind: "list", item, ...counts };
  return { ...common, kind: "json" };
}

function commonOf(name: string, schema: JsonObject, isRequired: boolean): FieldBase {
  const examples = schema["examples"];
  const example: Json | undefined = Array.isArray(examples) ? (examples as readonly Json[])[0] : undefined;
  return {
    name,
    title: textAt(schema, "title") ?? readable(name),
    description: textAt(schema, "description"),
    example: example === undefined ? null : typeof example === "string" ? example : JSON.stringify(example),
    isRequired,
    initial: schema["default"] ?? schema["const"] ?? undefined,
    isAdvanced: schema["x-more"] === true,
  };
}

/** Turn `file_path` or `filePath` into “File path”. */
export function readable(name: string): string {
  const spaced = name.replace(/[_-]+/g, " ").replace(/([a-z\d])([A-Z])/g, (_, end: string, start: string) => `${end} ${start.toLowerCase()}`);
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/**
 * Return the options of an enum or of titled constants, or null.
 *
 * `x-labels` names the values of an enum for people. The form then offers only the values with a label.
 */
function optionsOf(schema: JsonObject): Option[] | null {
  if (Array.isArray(schema["enum"])) {
    const labels = isObject(schema["x-labels"]) ? schema["x-labels"] : null;
    return (schema["enum"] as readonly Json[])
      .filter((value) => value !== null)
      .map((value) => {
        const label = labels && textAt(labels, String(value));
        return { value, label: label ?? labelOf(value), isHidden: labels !== null && label === null };
      });
  }
  const kinds = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(kinds) || !kinds.length) return null;
  const constants = (kinds as readonly Json[]).filter((property) => isObject(property) && "const" in property) as readonly JsonObject[];
  if (constants.length !== kinds.length) return null;
  return constants.map((property) => ({
    value: property["const"] as Json,
    label: textAt(property, "title") ?? labelOf(property["const"] as Json),
    isHidden: false,
  }));
}

function labelOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Drop null from a union, since a nullable field is optional. */
function dropNull(schema: JsonObject, root: JsonObject): JsonObject {
  const kinds = schema["anyOf"] ?? schema["oneOf"];
  if (!Array.isArray(kinds)) return schema;
  const others = (kinds as readonly Json[]).map((property) => resolveRef(property, root)).filter((property) => property["type"] !== "null");
  const [only] = others;
  if (others.length !== 1 || !only) return schema;
  const { anyOf: _any, oneOf: _one, ...rest } = schema;
  return { ...only, ...rest };
}

/** Resolve references within the schema. An unresolvable reference matches anything. */
function resolveRef(value: Json | undefined, root: JsonObject): JsonObject {
  let schema = isObject(value) ? value : {};
  for (let steps = 0; typeof schema["$ref"] === "string" && steps < MAX_DEPTH; steps += 1) {
    const { $ref, ...rest } = schema;
    const target = String($ref)
      .replace(/^#\/?/, "")
      .split("/")
      .reduce<Json | undefined>((from, name) => (isObject(from) ? from[name] : undefined), root);
    schema = isObject(target) ? { ...target, ...rest } : rest;
  }
  return schema;
}

function typesOf(schema: JsonObject): readonly Json[] {
  const type = schema["type"];
  return Array.isArray(type) ? type : type === undefined ? [] : [type];
}

/** Return the type that a form can edit, or null. */
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

const LONG_VALUE = 60;

export function fieldOfObject(value: JsonObject): GroupField {
  const fields = Object.entries(value).map(([name, item]) => fieldOfValue(name, item));
  return { ...commonOfValue("", {}), kind: "group", fields };
}

function fieldOfValue(name: string, value: Json): Field {
  const common = commonOfValue(name, value);
  if (typeof value === "string") return { ...common, ...textProps(value) };
  if (typeof value === "number") {
    const isInteger = Number.isInteger(value);
    const limits = { minimum: null, maximum: null, exclusiveMinimum: null, exclusiveMaximum: null };
    return { ...common, kind: "number", isInteger, ...limits };
  }
  if (typeof value === "boolean") return { ...common, kind: "flag" };
  if (Array.isArray(value) && value.length && value.every((item) => typeof item === "string")) {
    const item = { ...commonOfValue("", ""), ...textProps("") };
    return { ...common, kind: "list", item, minItems: null, maxItems: null };
  }
  if (isObject(value) && Object.keys(value).length) return { ...fieldOfObject(value), ...common, kind: "group" };
  return { ...common, kind: "json" };
}

function commonOfValue(name: string, value: Json): FieldBase {
  return {
    name,
    title: readable(name),
    description: null,
    example: null,
    isRequired: true,
    initial: value,
    isAdvanced: false,
  };
}

function textProps(value: string) {
  return {
    kind: "text",
    format: value.length > LONG_VALUE || value.includes("\n") ? "long" : "text",
    minLength: null,
    maxLength: null,
    pattern: null,
    allowsEmpty: true,
    allowsObjects: false,
  } as const;
}
