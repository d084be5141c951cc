/** The profile: which fields are shown, and which of them a refusal is about. */

import { describe, expect, test } from "vitest";

import { profileFields, refusedField } from "../src/views/profile/profile_fields.ts";

const SCHEMA = {
  type: "object",
  properties: {
    birth_info: { type: "object", required: ["date"], properties: { date: { type: "string" }, time: { type: "string" } } },
    extracted: { type: "array", items: { type: "string" } },
  },
};

describe("fields", () => {
  test("those of the schema come first, whatever else is kept follows as JSON", () => {
    const root = profileFields({ schema: SCHEMA, kept: { bicycle: { kind: "road" }, extracted: [] }, locale: "en" });
    expect(root.fields.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      "birth_info group",
      "extracted list",
      "bicycle json",
    ]);
  });

  test("without a schema all is JSON", () => {
    expect(profileFields({ schema: null, kept: { a: 1 }, locale: "en" }).fields.map(({ kind }) => kind)).toEqual(["json"]);
  });
});

describe("refusals", () => {
  const root = profileFields({ schema: SCHEMA, kept: {}, locale: "en" });
  test.each([
    ["profile: birth_info.date: too short.", ["birth_info", "date"]],
    ["profile: birth_info: There is no day 45. Give `date` as year, month, day.", ["birth_info", "date"]],
    ['profile: birth_info: "date" is a required property', ["birth_info", "date"]],
    ["profile: birth_info: It is in the future.", ["birth_info"]],
    ["profile: extracted.0: too long", ["extracted", "0"]],
    ["profile: unknown: no", null],
    ["Something else.", null],
  ])("%s", (detail, path) => {
    expect(refusedField(detail, root)?.path ?? null).toEqual(path);
  });
});
