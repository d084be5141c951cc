/** Profile: fields of the form, and the field that a server error names. */

import { describe, expect, test } from "vitest";

import { fieldProblem, profileFields } from "../src/views/profile/profile_state.ts";

const SCHEMA = {
  type: "object",
  properties: {
    address: { type: "object", required: ["city"], properties: { city: { type: "string" }, street: { type: "string" } } },
    facts: { type: "array", items: { type: "string" } },
  },
};

describe("fields", () => {
  test("fields of the schema come first, and other stored values follow as JSON", () => {
    const root = profileFields(SCHEMA, { bicycle: { kind: "road" }, facts: [] });
    expect(root.fields.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      "address group",
      "facts list",
      "bicycle json",
    ]);
  });

  test("without a schema every field is JSON", () => {
    expect(profileFields(null, { a: 1 }).fields.map(({ kind }) => kind)).toEqual(["json"]);
  });
});

describe("server errors", () => {
  const root = profileFields(SCHEMA, {});
  test.each([
    ["profile: address.city: too short.", ["address", "city"]],
    ["profile: address: There is no such city. Give `city` without a country.", ["address", "city"]],
    ['profile: address: "city" is a required property', ["address", "city"]],
    ["profile: address: It is not on the map.", ["address"]],
    ["profile: facts.0: too long", ["facts", "0"]],
    ["profile: unknown: no", null],
    ["Something else.", null],
  ])("%s", (detail, path) => {
    expect(fieldProblem(detail, root)?.path ?? null).toEqual(path);
  });
});
