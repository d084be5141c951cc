/** Forms: a JSON Schema becomes fields, what is written becomes a value, and a patch says only what changed. */

import { describe, expect, test } from "vitest";

import { draftOf, readDraft } from "../src/views/forms/draft.ts";
import { FormState } from "../src/views/forms/form_state.ts";
import { isEqual, type Json, type JsonObject } from "../src/views/forms/json.ts";
import { fieldOfObject, readable, readSchema } from "../src/views/forms/read_schema.ts";
import { patchOf } from "../src/views/profile/profile_state.ts";

const object = (properties: JsonObject, required: string[] = []): JsonObject => ({ type: "object", properties, required });
const field = (schema: JsonObject) => readSchema(object({ it: schema })).fields[0]!;
const needed = (schema: JsonObject) => readSchema(object({ it: schema }, ["it"])).fields[0]!;
const faultOf = (schema: JsonObject, draft: string) => readDraft(needed(schema), draft).problems[0]?.code ?? null;

describe("a schema as fields", () => {
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
  ])("a string of the format %s is typed as %s", (format, typed) => {
    expect(field({ type: "string", format })).toMatchObject({ format: typed });
  });

  test("a text that may be long has room for it", () => {
    expect(field({ type: "string", maxLength: 4000 })).toMatchObject({ format: "long" });
  });

  test("references inside the schema are followed, and one that stands in itself ends as JSON", () => {
    const schema = {
      ...object({ home: { $ref: "#/$defs/place" } }),
      $defs: { place: object({ city: { type: "string" }, next: { $ref: "#/$defs/place" } }) },
    };
    const home = readSchema(schema).fields[0];
    expect(home).toMatchObject({ kind: "group", fields: [{ name: "city", kind: "text" }, { name: "next" }] });
    expect(JSON.stringify(home)).toContain('"json"');
  });

  test("titles are the schema's, else the name as people write it", () => {
    expect(field({ type: "string", title: "City" }).title).toBe("City");
    expect(readable("birth_date")).toBe("Birth date");
    expect(readable("filePath")).toBe("File path");
  });
});

describe("what is written, as a value", () => {
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
  ])("%s comes back as it was", (_, schema, value) => {
    const asked = needed(schema);
    expect(readDraft(asked, draftOf(asked, value))).toEqual({ value, problems: [] });
  });

  test("what was left empty is left out, and told where it is needed", () => {
    expect(readDraft(field({ type: "string" }), "  ")).toEqual({ value: undefined, problems: [] });
    expect(faultOf({ type: "string" }, "")).toBe("required");
    expect(faultOf({ enum: ["a"] }, "")).toBe("required");
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
  ])("%j takes %j: %s", (schema, text, fault) => {
    expect(faultOf(schema, text)).toBe(fault);
  });

  test("too few and too many of a list are told", () => {
    const list = needed({ type: "array", items: { type: "string" }, minItems: 1, maxItems: 1 });
    expect(readDraft(list, []).problems[0]?.code).toBe("minItems");
    expect(readDraft(list, ["a", "b"]).problems[0]?.code).toBe("maxItems");
  });

  test("a group that nobody touched is left out; one that was begun says what it needs", () => {
    const group = field(object({ date: { type: "string" }, place: { type: "string" } }, ["date"]));
    expect(readDraft(group, { date: "", place: "" })).toEqual({ value: undefined, problems: [] });
    expect(readDraft(group, { date: "", place: "Bonn" }, ["birth"]).problems).toEqual([
      { path: ["birth", "date"], code: "required", limit: "" },
    ]);
  });

  test("what does not fit a field is not shown in it", () => {
    expect(draftOf(field({ type: "string", format: "date" }), "some day")).toBe("");
    expect(draftOf(field({ enum: ["a"] }), "b")).toBe("");
    expect(draftOf(field({ type: "number" }), "b")).toBe("");
  });

  test("defaults are filled in", () => {
    expect(draftOf(readSchema(object({ a: { type: "integer", default: 3 } })))).toEqual({ a: "3" });
  });
});

describe("arguments of a call", () => {
  test("they stay what they are, empty texts too", () => {
    const given = { text: "", many: ["a"], count: 2, loud: false, deep: { x: "y" }, odd: [1, "b"], none: {} };
    const form = new FormState(fieldOfObject(given), given);
    expect(form.read()).toEqual(given);
  });

  test("a changed one is changed", () => {
    const form = new FormState(fieldOfObject({ text: "hi", loud: false }), { text: "hi", loud: false });
    form.change(["text"], "hello");
    form.change(["loud"], true);
    expect(form.read()).toEqual({ text: "hello", loud: true });
  });
});

describe("a form while it is filled in", () => {
  test("a problem goes when its field is changed", () => {
    const root = readSchema(object({ a: { type: "string" }, b: { type: "string" } }, ["a", "b"]));
    const form = new FormState(root);
    expect(form.read()).toBeNull();
    expect(form.problems.value.map((problem) => problem.path)).toEqual([["a"], ["b"]]);
    form.change(["a"], "x");
    expect(form.problems.value.map((problem) => problem.path)).toEqual([["b"]]);
  });
});

describe("the patch of what changed", () => {
  const root = readSchema(
    object({
      birth: object({ date: { type: "string" }, time: { type: "string" } }),
      facts: { type: "array", items: { type: "string" } },
    }),
  );

  test.each<[string, JsonObject, JsonObject, JsonObject]>([
    ["nothing", { birth: { date: "1" } }, { birth: { date: "1" } }, {}],
    ["one key of a field", { birth: { date: "1", time: "2" } }, { birth: { date: "1", time: "3" } }, { birth: { time: "3" } }],
    ["a key is forgotten", { birth: { date: "1", time: "2" } }, { birth: { date: "1" } }, { birth: { time: null } }],
    ["a field is forgotten", { birth: { date: "1" } }, {}, { birth: null }],
    ["a list is replaced", { facts: ["a", "b"] }, { facts: ["b"] }, { facts: ["b"] }],
    ["a field is new", {}, { birth: { date: "1" } }, { birth: { date: "1" } }],
    ["what the form does not ask for stays", { birth: { date: "1", more: 5 }, other: 1 }, {}, { birth: { date: null } }],
    ["empty texts and lists are nothing", { birth: { date: "1", time: "" }, facts: [] }, { birth: { date: "1" } }, {}],
  ])("%s", (_, before, after, patch) => {
    expect(patchOf(root, before, after)).toEqual(patch);
  });

  test("names in another order are the same", () => {
    expect(isEqual({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true);
    expect(isEqual({ a: 1 }, { a: 1, b: 2 })).toBe(false);
  });
});
