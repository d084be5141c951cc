/** The parts of a page: what they come to, which are shown as one row, and their very bytes. */

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
  test("every kind of part has a kind that people know", () => {
    expect(kindOf(part({ kind: "prompt" }))).toBe("system");
    expect(kindOf(part({ kind: "tool", role: null }))).toBe("tools");
    expect(kindOf(part({ role: "tool" }))).toBe("results");
    expect(kindOf(part({ role: "assistant" }))).toBe("assistant");
    expect(kindOf(part({ kind: "summary" }))).toBe("summary");
    expect(kindOf(part({ kind: "quote" }))).toBe("quote");
    expect(kindOf(part({ kind: "envelope", role: null }))).toBe("other");
  });

  test("shares are of what was sent, and come to all of it", () => {
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

  test("what a reminder adds is not saved, and a small share is not nothing", () => {
    expect(savedOf([part({ decision: "injected", tokens: { before: 50, after: 10 } })])).toBe(0);
    expect(percent(0.001)).toBe("<1 %");
    expect(percent(0.426)).toBe("43 %");
    expect(percent(0)).toBe("0 %");
  });
});

describe("rows", () => {
  test("a long stretch of plainly kept messages is one row, with its tokens", () => {
    const rows = rowsOf([part({ kind: "system", decision: "injected" }), ...many(MIN_RANGE), part({ decision: "folded" })]);
    expect(rows.map((row) => row.type)).toEqual(["part", "range", "part"]);
    expect(rows[1]).toMatchObject({ place: 1, of: "messages", tokens: 10 * MIN_RANGE });
    expect(rows[2]).toMatchObject({ place: MIN_RANGE + 1 });
  });

  test("a short one stays, and tools do not go with messages", () => {
    expect(rowsOf(many(MIN_RANGE - 1))).toHaveLength(MIN_RANGE - 1);
    const rows = rowsOf([...many(MIN_RANGE, { kind: "tool", role: null }), ...many(MIN_RANGE)]);
    expect(rows.map((row) => (row.type === "range" ? row.of : "part"))).toEqual(["tools", "messages"]);
  });

  test("two thousand parts come to few rows, and each part is in exactly one", () => {
    const parts = Array.from({ length: 2000 }, (_, at) => part({ decision: at % 100 ? "kept" : "folded" }));
    const rows = rowsOf(parts);
    expect(rows.length).toBeLessThan(50);
    expect(rows.reduce((sum, row) => sum + (row.type === "part" ? 1 : row.parts.length), 0)).toBe(2000);
  });

  test("one decision alone keeps the places", () => {
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
  test("spans count bytes: text beyond ASCII is cut where the server cuts it", () => {
    const pieces = ['{"a":"', "八字命理", "✨ é", '"}'];
    const bytes = new TextEncoder().encode(pieces.join(""));
    let from = 0;
    for (const piece of pieces) {
      const to = from + new TextEncoder().encode(piece).length;
      expect(textAt(bytes, [from, to])).toBe(piece);
      from = to;
    }
  });

  test("escapes are read in one pass", () => {
    expect(readable(String.raw`a\nb \"c\" \\n \u516b`)).toBe('a\nb "c" \\n 八');
  });

  test("JSON is set on lines as everybody does it, and is the same JSON", () => {
    for (const value of [{ a: 1 }, {}, [], [[], {}], { a: [1, { b: "x, {y}: \"z\" \\\\" }], c: null }, "八", -1.5e3]) {
      expect(pretty(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
    }
  });

  test("numbers and escapes stay as they were written", () => {
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
  const known = originalsOf(messages);

  test("a result is found by its own id, behind the words of its call", () => {
    expect([...known.keys()]).toEqual(["u", "a", "r", "v"]);
    expect(originalOf({ source: "r" }, known)).toEqual([{ id: "r", role: "tool", text: "all of it" }]);
    expect(known.get("a")?.text).toBe("read({})");
  });

  test("messages left out together are all there", () => {
    expect(originalOf({ source: "u", upto: "r" }, known).map(({ id }) => id)).toEqual(["u", "a", "r"]);
  });

  test("what is not in view any more is nothing", () => {
    expect(originalOf({ source: "gone" }, known)).toEqual([]);
    expect(originalOf({ source: "gone", upto: "r" }, known)).toEqual([]);
  });

  test("a excerpt is one line and never half a sign", () => {
    expect(excerpt("  a\n\n b ")).toBe("a b");
    expect(excerpt("✨".repeat(5), 3)).toBe("✨✨✨…");
    expect(excerpt("𠮷".repeat(5), 3)).toBe("𠮷𠮷𠮷…");
  });
});
