/** Forms: fields from a JSON Schema, values from drafts, and patches of changes. */

import { describe, expect, test } from "vitest";

import { draftOf, FormState, readDraft } from "../src/views/forms/draft.ts";
import { isEqual, type Json, type JsonObject } from "../src/views/forms/json.ts";
import { fieldOfObject, readable, readSchema } from "../src/views/forms/read_schema.ts";
import { formSchema } from "../src/views/interrupts/interrupts.tsx";
import { patchOf } from "../src/views/profile/profile_state.ts";

const object = (properties: JsonObject, required: string[] = []): JsonObject => ({ type: "object", properties, required });
const field = (schema: JsonObject) => readSchema(object({ it: schema })).fields[0]!;
const requiredField = (schema: JsonObject) => readSchema(object({ it: schema }, ["it"])).fields[0]!;
const errorOf = (schema: JsonObject, draft: string) => readDraft(requiredField(schema), draft).problems[0]?.code ?? null;

describe("fields of a schema", () => {
  test.each<[string, JsonObject, string]>([
    ["a string", { type: "string" }, "text"],
    ["a whole number", { type: "integer" }, "number"],
    ["a number", { type: "number" }, "number"],
    ["yes or no", { type: "boolean" }, "flag"],
    ["an enum", { enum: ["a", 1] }, "choice"],
    ["titled constants", { oneOf: [{ const: "a", title: "A" }, { const: "b" }] }, "choice"],
    ["several of an enum", { type: "array", items: { enum: ["a"] } }, "choices"],
    ["a list of strings", { type: "array", items: { type: "string" } }, "list"],
    ["an object", { type: "object", properties: { x: { type: "string" } } }, "group"],
    ["an object of any names", { type: "object" }, "json"],
    ["a list of objects", { type: "array", items: { type: "object", properties: {} } }, "json"],
    ["anything", {}, "json"],
    ["one of two objects", { anyOf: [{ type: "object" }, { type: "string" }] }, "json"],
    ["a string or null", { anyOf: [{ type: "string" }, { type: "null" }] }, "text"],
    ["a number or null", { type: ["number", "null"] }, "number"],
    ["a string or an object", { type: ["string", "object"] }, "text"],
  ])("%s", (_, schema, kind) => {
    expect(field(schema).kind).toBe(kind);
  });

  test.each([
    ["date", "date"],
    ["time", "time"],
    ["email", "email"],
    ["uri", "uri"],
    ["made-up", "text"],
  ])("the format %s has an input of type %s", (format, type) => {
    expect(field({ type: "string", format })).toMatchObject({ format: type });
  });

  test("a long text has a text area", () => {
    expect(field({ type: "string", maxLength: 4000 })).toMatchObject({ format: "long" });
  });

  test("references are resolved, and a recursive one ends as a JSON field", () => {
    const schema = {
      ...object({ home: { $ref: "#/$defs/place" } }),
      $defs: { place: object({ city: { type: "string" }, next: { $ref: "#/$defs/place" } }) },
    };
    const home = readSchema(schema).fields[0];
    expect(home).toMatchObject({ kind: "group", fields: [{ name: "city", kind: "text" }, { name: "next" }] });
    expect(JSON.stringify(home)).toContain('"json"');
  });

  test("labels name the values of an enum, and hide values without a label", () => {
    const options = [
      { value: "m", label: "Metric", isHidden: false },
      { value: "old", label: "old", isHidden: true },
    ];
    expect(field({ enum: ["m", "old"], "x-labels": { m: "Metric" } })).toMatchObject({ options });
  });

  test("a field without a title shows its name as words", () => {
    expect(field({ type: "string", title: "City" }).title).toBe("City");
    expect(readable("start_date")).toBe("Start date");
    expect(readable("filePath")).toBe("File path");
  });
});

describe("values of drafts", () => {
  test.each<[string, JsonObject, Json]>([
    ["text", { type: "string" }, "Bonn"],
    ["number", { type: "number" }, 1.5],
    ["flag", { type: "boolean" }, false],
    ["choice of numbers", { enum: [1, 2] }, 2],
    ["choices", { type: "array", items: { enum: ["a", "b"] } }, ["b"]],
    ["list", { type: "array", items: { type: "integer" } }, [1, 2]],
    ["group", object({ city: { type: "string" } }), { city: "Bonn" }],
    ["JSON", {}, { any: [1, null] }],
    ["mixed", { type: "array", items: { type: ["string", "object"] } }, ["one", { a: 1 }]],
  ])("%s keeps its value", (_, schema, value) => {
    const item = requiredField(schema);
    expect(readDraft(item, draftOf(item, value))).toEqual({ value, problems: [] });
  });

  test("an empty field is left out, or reported if it is required", () => {
    expect(readDraft(field({ type: "string" }), "  ")).toEqual({ value: undefined, problems: [] });
    expect(errorOf({ type: "string" }, "")).toBe("required");
    expect(errorOf({ enum: ["a"] }, "")).toBe("required");
  });

  test.each<[JsonObject, string, string | null]>([
    [{ type: "string", minLength: 3 }, "ab", "minLength"],
    [{ type: "string", maxLength: 2 }, "abc", "maxLength"],
    [{ type: "string", maxLength: 2 }, "😀😀", null],
    [{ type: "string", pattern: "^a" }, "b", "pattern"],
    [{ type: "string", pattern: "(" }, "b", null],
    [{ type: "string", format: "date" }, "1990-13-01", "date"],
    [{ type: "string", format: "time" }, "25:00", "time"],
    [{ type: "string", format: "time" }, "14:30", null],
    [{ type: "string", format: "email" }, "anna", "email"],
    [{ type: "string", format: "uri" }, "example", "uri"],
    [{ type: "integer" }, "1.5", "integer"],
    [{ type: "number" }, "?", "number"],
    [{ type: "number", minimum: 2 }, "1", "minimum"],
    [{ type: "number", maximum: 2 }, "3", "maximum"],
    [{ type: "number", exclusiveMinimum: 2 }, "2", "exclusiveMinimum"],
    [{ type: "number", exclusiveMaximum: 2 }, "2", "exclusiveMaximum"],
    [{}, "{", "json"],
  ])("%j and the text %j give the error %s", (schema, text, code) => {
    expect(errorOf(schema, text)).toBe(code);
  });

  test("a list reports too few and too many items", () => {
    const list = requiredField({ type: "array", items: { type: "string" }, minItems: 1, maxItems: 1 });
    expect(readDraft(list, []).problems[0]?.code).toBe("minItems");
    expect(readDraft(list, ["a", "b"]).problems[0]?.code).toBe("maxItems");
  });

  test("an untouched group is left out, and a partial one reports its required fields", () => {
    const group = field(object({ date: { type: "string" }, place: { type: "string" } }, ["date"]));
    expect(readDraft(group, { date: "", place: "" })).toEqual({ value: undefined, problems: [] });
    expect(readDraft(group, { date: "", place: "Bonn" }, ["home"]).problems).toEqual([
      { path: ["home", "date"], code: "required", limit: "" },
    ]);
  });

  test("a value that does not fit its field gives an empty draft", () => {
    expect(draftOf(field({ type: "string", format: "date" }), "some day")).toBe("");
    expect(draftOf(field({ enum: ["a"] }), "b")).toBe("");
    expect(draftOf(field({ type: "number" }), "b")).toBe("");
  });

  test("defaults fill the draft", () => {
    expect(draftOf(readSchema(object({ a: { type: "integer", default: 3 } })))).toEqual({ a: "3" });
  });
});

describe("arguments of a call", () => {
  test("unchanged arguments keep their values and types", () => {
    const args = { text: "", many: ["a"], count: 2, loud: false, deep: { x: "y" }, odd: [1, "b"], none: {} };
    const form = new FormState(fieldOfObject(args), args);
    expect(form.read()).toEqual(args);
  });

  test("edited arguments change", () => {
    const form = new FormState(fieldOfObject({ text: "hi", loud: false }), { text: "hi", loud: false });
    form.change(["text"], "hello");
    form.change(["loud"], true);
    expect(form.read()).toEqual({ text: "hello", loud: true });
  });
});

describe("form state", () => {
  test("changing a field removes its error", () => {
    const root = readSchema(object({ a: { type: "string" }, b: { type: "string" } }, ["a", "b"]));
    const form = new FormState(root);
    expect(form.read()).toBeNull();
    expect(form.problems.value.map((problem) => problem.path)).toEqual([["a"], ["b"]]);
    form.change(["a"], "x");
    expect(form.problems.value.map((problem) => problem.path)).toEqual([["b"]]);
  });
});

describe("patch of changes", () => {
  const root = readSchema(
    object({
      home: object({ date: { type: "string" }, time: { type: "string" } }),
      facts: { type: "array", items: { type: "string" } },
    }),
  );

  test.each<[string, JsonObject, JsonObject, JsonObject]>([
    ["no change", { home: { date: "1" } }, { home: { date: "1" } }, {}],
    ["a changed key", { home: { date: "1", time: "2" } }, { home: { date: "1", time: "3" } }, { home: { time: "3" } }],
    ["a deleted key", { home: { date: "1", time: "2" } }, { home: { date: "1" } }, { home: { time: null } }],
    ["a deleted field", { home: { date: "1" } }, {}, { home: null }],
    ["a changed list", { facts: ["a", "b"] }, { facts: ["b"] }, { facts: ["b"] }],
    ["a new field", {}, { home: { date: "1" } }, { home: { date: "1" } }],
    ["keys without a field", { home: { date: "1", more: 5 }, other: 1 }, {}, { home: { date: null } }],
    ["empty texts and lists", { home: { date: "1", time: "" }, facts: [] }, { home: { date: "1" } }, {}],
  ])("%s", (_, before, after, patch) => {
    expect(patchOf(root, before, after)).toEqual(patch);
  });

  test("the order of keys does not matter", () => {
    expect(isEqual({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true);
    expect(isEqual({ a: 1 }, { a: 1, b: 2 })).toBe(false);
  });
});

describe("S3: the form of a tool", () => {
  const parameters = object({ city: { type: "string" }, cancelled: { type: "boolean" } });

  test("takes titles from the profile field that has all its parameters", () => {
    const address = object({ street: {}, city: { type: "string", title: "City" } }, ["city"]);
    const schema = formSchema(parameters, object({ facts: { type: "array" }, address }));
    expect(schema).toMatchObject({ required: ["city"], properties: { city: { title: "City" } } });
    expect(Object.keys(schema["properties"] as JsonObject)).toEqual(["city"]);
  });

  test("shows its own parameters if no profile field has them", () => {
    expect(formSchema(parameters, object({ name: { type: "string" } }))["properties"]).toEqual({ city: { type: "string" } });
    expect(formSchema(parameters, null)["properties"]).toEqual({ city: { type: "string" } });
  });
});
