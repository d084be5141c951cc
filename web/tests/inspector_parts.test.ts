/** Parts of a page: composition, rows, bytes and originals. */

import { describe, expect, test } from "vitest";

import type { Decision, Part } from "../src/api/calls.ts";
import type { Message } from "../src/conversation/messages.ts";
import { compositionOf, kindOf, percent, savedOf } from "../src/views/inspector/parts/composition.tsx";
import { excerpt, originalOf, originalsOf } from "../src/views/inspector/parts/originals.ts";
import { pretty, readable, textAt } from "../src/views/inspector/parts/page_bytes.ts";
import { decisionsOf, MIN_RANGE, rowsByDecision, rowsOf } from "../src/views/inspector/parts/part_list.tsx";

function part(more: Partial<Part> = {}): Part {
  return {
    kind: "message",
    source: "m",
    role: "user",
    decision: "kept",
    rule: null,
    reason: "as in the conversation",
    tokens: { before: 10, after: 10 },
    span: [0, 1],
    words: "words",
    ...more,
  };
}

const many = (count: number, more: Partial<Part> = {}) => Array.from({ length: count }, () => part(more));

describe("composition", () => {
  test("each part belongs to a kind of the composition", () => {
    expect(kindOf(part({ kind: "prompt" }))).toBe("system");
    expect(kindOf(part({ kind: "tool", role: null }))).toBe("tools");
    expect(kindOf(part({ role: "tool" }))).toBe("results");
    expect(kindOf(part({ role: "assistant" }))).toBe("assistant");
    expect(kindOf(part({ kind: "summary" }))).toBe("summary");
    expect(kindOf(part({ kind: "quote" }))).toBe("quote");
    expect(kindOf(part({ kind: "envelope", role: null }))).toBe("other");
  });

  test("shares of the sent parts add up to 1", () => {
    const parts = [
      part({ kind: "system", tokens: { before: 60, after: 60 } }),
      part({ tokens: { before: 40, after: 40 } }),
      part({ decision: "dropped", span: null, tokens: { before: 900, after: 0 } }),
    ];
    const shares = compositionOf(parts);
    expect(shares.map(({ kind, tokens, share }) => [kind, tokens, share])).toEqual([
      ["system", 60, 0.6],
      ["user", 40, 0.4],
    ]);
    expect(savedOf(parts)).toBe(900);
  });

  test("injected parts save nothing, and a small share is not 0 %", () => {
    expect(savedOf([part({ decision: "injected", tokens: { before: 50, after: 10 } })])).toBe(0);
    expect(percent(0.001)).toBe("<1 %");
    expect(percent(0.426)).toBe("43 %");
    expect(percent(0)).toBe("0 %");
  });
});

describe("rows", () => {
  test("a long range of kept messages is one row", () => {
    const rows = rowsOf([part({ kind: "system", decision: "injected" }), ...many(MIN_RANGE), part({ decision: "folded" })]);
    expect(rows.map((row) => row.type)).toEqual(["part", "range", "part"]);
    expect(rows[1]).toMatchObject({ place: 1, of: "messages", tokens: 10 * MIN_RANGE });
    expect(rows[2]).toMatchObject({ place: MIN_RANGE + 1 });
  });

  test("a short range stays, and tools and messages have separate ranges", () => {
    expect(rowsOf(many(MIN_RANGE - 1))).toHaveLength(MIN_RANGE - 1);
    const rows = rowsOf([...many(MIN_RANGE, { kind: "tool", role: null }), ...many(MIN_RANGE)]);
    expect(rows.map((row) => (row.type === "range" ? row.of : "part"))).toEqual(["tools", "messages"]);
  });

  test("two thousand parts give few rows, with each part in exactly one", () => {
    const parts = Array.from({ length: 2000 }, (_, at) => part({ decision: at % 100 ? "kept" : "folded" }));
    const rows = rowsOf(parts);
    expect(rows.length).toBeLessThan(50);
    expect(rows.reduce((sum, row) => sum + (row.type === "part" ? 1 : row.parts.length), 0)).toBe(2000);
  });

  test("filtered rows keep their positions", () => {
    const decisions: Decision[] = ["kept", "cut", "kept", "cut"];
    const parts = decisions.map((decision) => part({ decision }));
    expect(rowsByDecision(parts, "cut").map((row) => row.place)).toEqual([1, 3]);
    expect([...decisionsOf(parts)]).toEqual([
      ["kept", 2],
      ["cut", 2],
    ]);
  });
});

describe("bytes", () => {
  test("spans count bytes, also in text beyond ASCII", () => {
    const pieces = ['{"a":"', "大家早上好", "✨ é", '"}'];
    const bytes = new TextEncoder().encode(pieces.join(""));
    let from = 0;
    for (const piece of pieces) {
      const to = from + new TextEncoder().encode(piece).length;
      expect(textAt(bytes, [from, to])).toBe(piece);
      from = to;
    }
  });

  test("escapes are decoded in one pass", () => {
    expect(readable(String.raw`a\nb \"c\" \\n \u516b`)).toBe('a\nb "c" \\n 八');
  });

  test("formatted JSON equals that of JSON.stringify", () => {
    for (const value of [{ a: 1 }, {}, [], [[], {}], { a: [1, { b: "x, {y}: \"z\" \\\\" }], c: null }, "八", -1.5e3]) {
      expect(pretty(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
    }
  });

  test("formatting keeps numbers and escapes", () => {
    expect(pretty(String.raw`{"n":12345678901234567890,"x":1.0,"e":"\u00e9\/"}`)).toBe(
      String.raw`{
  "n": 12345678901234567890,
  "x": 1.0,
  "e": "\u00e9\/"
}`,
    );
  });
});

describe("originals", () => {
  const call = { id: "c", name: "read", arguments: "{}", state: "done", result: "all of it", resultId: "r" } as const;
  const messages = [
    { role: "user", id: "u", text: "Read it", files: [] },
    { role: "assistant", id: "a", text: "", calls: [call] },
    { role: "user", id: "v", text: "Again", files: [] },
  ] as unknown as readonly Message[];
  const originals = originalsOf(messages);

  test("a result has its own id and follows its call", () => {
    expect([...originals.keys()]).toEqual(["u", "a", "r", "v"]);
    expect(originalOf({ source: "r" }, originals)).toEqual([{ id: "r", role: "tool", text: "all of it" }]);
    expect(originals.get("a")?.text).toBe("read({})");
  });

  test("a range gives all its messages", () => {
    expect(originalOf({ source: "u", upto: "r" }, originals).map(({ id }) => id)).toEqual(["u", "a", "r"]);
  });

  test("a message that left the view has no original", () => {
    expect(originalOf({ source: "missing" }, originals)).toEqual([]);
    expect(originalOf({ source: "missing", upto: "r" }, originals)).toEqual([]);
  });

  test("an excerpt is one line and never splits a character", () => {
    expect(excerpt("  a\n\n b ")).toBe("a b");
    expect(excerpt("✨".repeat(5), 3)).toBe("✨✨✨…");
    expect(excerpt("𠮷".repeat(5), 3)).toBe("𠮷𠮷𠮷…");
  });
});
