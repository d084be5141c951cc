/** A field for a value of which no schema is known, such as the arguments of a call: it stays what it is. */

import type { Common, Field, GroupField } from "./field.ts";
import { isObject, type Json, type JsonObject } from "./json.ts";
import { readable } from "./read_schema.ts";

const LONG = 60;

export function fieldOfObject(value: JsonObject): GroupField {
  const fields = Object.entries(value).map(([name, one]) => fieldOfValue(name, one));
  return { ...commonOf("", {}), kind: "group", fields };
}

function fieldOfValue(name: string, value: Json): Field {
  const common = commonOf(name, value);
  if (typeof value === "string") return { ...common, ...textOf(value) };
  if (typeof value === "number") {
    const whole = Number.isInteger(value);
    return { ...common, kind: "number", isWhole: whole, minimum: null, maximum: null, above: null, below: null };
  }
  if (typeof value === "boolean") return { ...common, kind: "flag" };
  if (Array.isArray(value) && value.length && value.every((item) => typeof item === "string")) {
    const item = { ...commonOf("", ""), ...textOf("") };
    return { ...common, kind: "list", item, minItems: null, maxItems: null };
  }
  if (isObject(value) && Object.keys(value).length) return { ...fieldOfObject(value), ...common, kind: "group" };
  return { ...common, kind: "json" };
}

function commonOf(name: string, value: Json): Common {
  return {
    name,
    title: readable(name),
    description: null,
    example: null,
    isRequired: true,
    initial: value,
    isMore: false,
  };
}

function textOf(value: string) {
  return {
    kind: "text",
    format: value.length > LONG || value.includes("\n") ? "long" : "text",
    minLength: null,
    maxLength: null,
    pattern: null,
    takesEmpty: true,
    takesObjects: false,
    unknown: null,
  } as const;
}
