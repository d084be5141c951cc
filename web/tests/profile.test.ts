/** The profile: which fields are shown, and which of them a refusal is about. */

import { describe, expect, test } from "vitest";

import { fieldProblem, profileFields } from "../src/views/profile/profile_state.ts";

const SCHEMA = {
  type: "object",
  properties: {
    birth_info: { type: "object", required: ["date"], properties: { date: { type: "string" }, time: { type: "string" } } },
    extracted: { type: "array", items: { type: "string" } },
  },
};

describe("fields", () => {
  test("those of the schema come first, whatever else is kept follows as JSON", () => {
    const root = profileFields(SCHEMA, { bicycle: { kind: "road" }, extracted: [] });
    expect(root.fields.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      "birth_info group",
      "extracted list",
      "bicycle json",
    ]);
  });

  test("without a schema all is JSON", () => {
    expect(profileFields(null, { a: 1 }).fields.map(({ kind }) => kind)).toEqual(["json"]);
  });
});

describe("rejections", () => {
  const root = profileFields(SCHEMA, {});
  test.each([
    ["profile: birth_info.date: too short.", ["birth_info", "date"]],
    ["profile: birth_info: There is no day 45. Give `date` as year, month, day.", ["birth_info", "date"]],
    ['profile: birth_info: "date" is a required property', ["birth_info", "date"]],
    ["profile: birth_info: It is in the future.", ["birth_info"]],
    ["profile: extracted.0: too long", ["extracted", "0"]],
    ["profile: unknown: no", null],
    ["Something else.", null],
  ])("%s", (detail, path) => {
    expect(fieldProblem(detail, root)?.path ?? null).toEqual(path);
  });
});
