/** Forms: a JSON Schema becomes fields, what is written becomes a value, and a patch says only what changed. */

import { describe, expect, test } from "vitest";

import { birthKnown, birthSchema, calendarIn } from "../src/views/forms/birth_schema.ts";
import { draftOf, readDraft } from "../src/views/forms/draft.ts";
import { fieldOfObject } from "../src/views/forms/field_of_value.ts";
import { FormState } from "../src/views/forms/form_state.ts";
import { isSame, type Json, type JsonObject } from "../src/views/forms/json.ts";
import { patchOf } from "../src/views/forms/patch.ts";
import { readable, readSchema } from "../src/views/forms/read_schema.ts";

const object = (properties: JsonObject, required: string[] = []): JsonObject => ({ type: "object", properties, required });
const field = (schema: JsonObject) => readSchema(object({ it: schema })).fields[0]!;
const needed = (schema: JsonObject) => readSchema(object({ it: schema }, ["it"])).fields[0]!;
const faultOf = (schema: JsonObject, draft: string) => readDraft(needed(schema), draft).problems[0]?.fault ?? null;

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
    expect(faultOf({ type: "string" }, "")).toBe("missing");
    expect(faultOf({ enum: ["a"] }, "")).toBe("missing");
  });

  test.each<[JsonObject, string, string | null]>([
    [{ type: "string", minLength: 3 }, "ab", "short"],
    [{ type: "string", maxLength: 2 }, "abc", "long"],
    [{ type: "string", maxLength: 2 }, "😀😀", null],
    [{ type: "string", pattern: "^a" }, "b", "pattern"],
    [{ type: "string", pattern: "(" }, "b", null],
    [{ type: "string", format: "date" }, "1990-13-01", "date"],
    [{ type: "string", format: "time" }, "25:00", "time"],
    [{ type: "string", format: "time" }, "14:30", null],
    [{ type: "string", format: "email" }, "anna", "email"],
    [{ type: "string", format: "uri" }, "example", "uri"],
    [{ type: "integer" }, "1.5", "whole"],
    [{ type: "number" }, "?", "number"],
    [{ type: "number", minimum: 2 }, "1", "least"],
    [{ type: "number", maximum: 2 }, "3", "most"],
    [{ type: "number", exclusiveMinimum: 2 }, "2", "above"],
    [{ type: "number", exclusiveMaximum: 2 }, "2", "below"],
    [{}, "{", "json"],
  ])("%j takes %j: %s", (schema, text, fault) => {
    expect(faultOf(schema, text)).toBe(fault);
  });

  test("too few and too many of a list are told", () => {
    const list = needed({ type: "array", items: { type: "string" }, minItems: 1, maxItems: 1 });
    expect(readDraft(list, []).problems[0]?.fault).toBe("few");
    expect(readDraft(list, ["a", "b"]).problems[0]?.fault).toBe("many");
  });

  test("a group that nobody touched is left out; one that was begun says what it needs", () => {
    const group = field(object({ date: { type: "string" }, place: { type: "string" } }, ["date"]));
    expect(readDraft(group, { date: "", place: "" })).toEqual({ value: undefined, problems: [] });
    expect(readDraft(group, { date: "", place: "Bonn" }, ["birth"]).problems).toEqual([
      { path: ["birth", "date"], fault: "missing", limit: "" },
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
    const form = new FormState(() => fieldOfObject(given), given);
    expect(form.read()).toEqual(given);
  });

  test("a changed one is changed", () => {
    const form = new FormState(() => fieldOfObject({ text: "hi", loud: false }), { text: "hi", loud: false });
    form.change(["text"], "hello");
    form.change(["loud"], true);
    expect(form.read()).toEqual({ text: "hello", loud: true });
  });
});

describe("a form while it is filled in", () => {
  test("a problem goes when its field is changed", () => {
    const root = readSchema(object({ a: { type: "string" }, b: { type: "string" } }, ["a", "b"]));
    const form = new FormState(() => root);
    expect(form.read()).toBeNull();
    expect(form.problems.value.map((problem) => problem.path)).toEqual([["a"], ["b"]]);
    form.change(["a"], "x");
    expect(form.problems.value.map((problem) => problem.path)).toEqual([["b"]]);
  });
});

describe("a birth", () => {
  const nullable = (type: string): Json => ({ anyOf: [{ type }, { type: "null" }], default: null, description: "for models" });
  const schema = object(
    Object.fromEntries(
      [
        ...["date", "time", "place", "gender", "calendar"].map((name) => [name, nullable("string")] as const),
        ...["leap_month", "cancelled"].map((name) => [name, nullable("boolean")] as const),
      ],
    ),
  );
  const formOf = (known: JsonObject) =>
    new FormState((draft) => {
      const calendar = calendarIn(draft["calendar"]);
      return readSchema(birthSchema(schema, { locale: "en", known, calendar, isAsked: true }));
    }, known);
  const names = (form: FormState) => form.root.value.fields.map((one) => one.name);

  test("is asked for in the order people tell it, without what is for models", () => {
    expect(names(formOf({}))).toEqual(["calendar", "date", "time", "place", "gender"]);
    expect(JSON.stringify(formOf({}).root.value)).not.toContain("for models");
  });

  test("a lunar date is written, and may lie in a leap month", () => {
    const form = formOf({ date: "1990-02-30", calendar: "lunar", leap_month: true });
    expect(names(form)).toContain("leap_month");
    expect(form.root.value.fields.find((one) => one.name === "date")).toMatchObject({ format: "text" });
    expect(form.read()).toEqual({ calendar: "lunar", date: "1990-02-30", leap_month: true });
  });

  test("words for a time that no clock shows stay words", () => {
    expect(formOf({ date: "1990-05-15", time: "下午2点半" }).read()).toMatchObject({ time: "下午2点半" });
  });

  test("a time that is not known is left out", () => {
    const form = formOf({ date: "1990-05-15" });
    form.change(["time"], false);
    expect(form.read()).toEqual({ calendar: "solar", date: "1990-05-15" });
  });

  test("a date is needed", () => {
    const form = formOf({});
    expect(form.read()).toBeNull();
    expect(form.problems.value.map((problem) => problem.path)).toEqual([["date"]]);
  });

  test("genders have one name each", () => {
    expect(birthKnown({ gender: "女" })).toEqual({ gender: "female" });
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
    expect(isSame({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true);
    expect(isSame({ a: 1 }, { a: 1, b: 2 })).toBe(false);
  });
});
