/** Calls of a thread: order, chart, differences, and texts in both languages. */

import { afterEach, describe, expect, test } from "vitest";

import type { Difference, ThreadCall } from "../src/api/calls.ts";
import { locale } from "../src/language/language.ts";
import { linkTo, readRoute } from "../src/state/route.ts";
import { causeText } from "../src/views/inspector/change_words.ts";
import { breakRow } from "../src/views/inspector/changes.tsx";
import { reasonText, ruleText, translateReason } from "../src/views/inspector/parts/reasons.ts";
import { noteTexts } from "../src/views/inspector/preview.tsx";
import { findCall, neighborsOf, previousCall } from "../src/views/inspector/state.ts";
import { figuresOf, formatShort, labelIndexes, slotAt, yAt } from "../src/views/inspector/thread_calls.tsx";

const CAUSES = [
  "turn_closed",
  "window_slid",
  "fold_step",
  "compaction",
  "skill_changed",
  "prompt_changed",
  "tools_changed",
  "settings_changed",
  "documents_changed",
  "reminder_changed",
  "rollback",
  "retry",
  "repaired",
  "model_changed",
  "purpose_changed",
];

function call(run: string, n: number, more: Partial<ThreadCall> = {}): ThreadCall {
  return {
    run,
    n,
    purpose: "reply",
    model: "demo",
    started: "2026-01-01T00:00:00Z",
    firstToken: null,
    ended: null,
    finish: null,
    usage: null,
    price: null,
    tokens: 100,
    saved: 0,
    digest: "",
    error: null,
    ...more,
  };
}

afterEach(() => {
  locale.value = "en";
});

describe("order", () => {
  const calls = [call("a", 1), call("a", 2), call("b", 1, { purpose: "title" }), call("b", 2), call("b", 3, { purpose: "summary" })];

  test("a missing number means the last reply of the run", () => {
    expect(findCall(calls, "b", null)?.n).toBe(2);
    expect(findCall(calls, "b", 3)?.purpose).toBe("summary");
    expect(findCall(calls, "b", 9)).toBeNull();
    expect(findCall(calls, "c", null)).toBeNull();
  });

  test("neighbors cross runs", () => {
    expect(neighborsOf(calls, { run: "b", n: 1 })).toMatchObject({ previous: { run: "a", n: 2 }, next: { run: "b", n: 2 } });
    expect(neighborsOf(calls, { run: "a", n: 1 }).previous).toBeNull();
    expect(neighborsOf(calls, { run: "z", n: 1 })).toEqual({ previous: null, next: null });
  });

  test("a call is compared with the previous one of the same purpose", () => {
    expect(previousCall(calls, { run: "b", n: 2 })).toMatchObject({ run: "a", n: 2 });
    expect(previousCall(calls, { run: "b", n: 1 })).toBeNull();
  });
});

describe("chart", () => {
  test("zero is at the bottom and the maximum at the top", () => {
    const scale = { top: 10, height: 100, max: 50 };
    expect([0, 25, 50].map((value) => yAt(value, scale))).toEqual([110, 60, 10]);
    expect(yAt(0, { ...scale, max: 0 })).toBe(110);
  });

  test("bars share the width and stay inside it", () => {
    for (const count of [1, 4, 500]) {
      const slots = Array.from({ length: count }, (_, at) => slotAt(at, count, 40, 400));
      expect(slots[0]?.left).toBeGreaterThanOrEqual(39.5);
      expect((slots.at(-1)?.left ?? 0) + (slots.at(-1)?.width ?? 0)).toBeLessThanOrEqual(440.5);
      expect(slots.every((slot) => slot.width >= 1)).toBe(true);
    }
    expect(labelIndexes(4, 400)).toEqual([0, 1, 2, 3]);
    expect(labelIndexes(500, 400).length).toBeLessThan(15);
  });

  test("figures prefer the counts of the provider, and the cache never exceeds the input", () => {
    const usage = { inputTokens: 90, cachedInputTokens: 200 };
    expect(figuresOf(call("a", 1, { usage, saved: 7 }))).toMatchObject({ sent: 90, cached: 90, saved: 7, price: null });
    expect(figuresOf(call("a", 1, { saved: null }))).toMatchObject({ sent: 100, cached: 0, saved: 0 });
    expect([999, 1500, 2_000_000].map(formatShort)).toEqual(["999", "1.5k", "2M"]);
  });
});

describe("difference", () => {
  test.each(CAUSES)("the cause %s has a text in both languages", (cause) => {
    const en = causeText(cause);
    locale.value = "zh";
    const zh = causeText(cause);
    expect(en).not.toContain(cause);
    expect(zh).toMatch(/[一-鿿]/);
    expect(zh).not.toContain(cause);
  });

  test("an unknown cause shows its name", () => {
    expect(causeText("moon_phase")).toContain("moon_phase");
  });

  test("the prefix break is at the row with the first changed byte", () => {
    const difference = {
      firstDifference: { offset: 9, before: { place: 5 }, after: null },
      prefixBreak: { cause: "retry" },
      parts: [
        { change: "same", places: { before: [0, 5], after: [0, 5] } },
        { change: "added", places: { before: null, after: [5, 6] } },
        { change: "changed", places: { before: [5, 6], after: [6, 7] } },
      ],
    } as unknown as Difference;
    expect(breakRow(difference)).toBe(2);
    expect(breakRow({ ...difference, prefixBreak: null })).toBe(-1);
  });
});

describe("texts", () => {
  test("reasons are in English, and in Chinese if the page has a translation", () => {
    expect(reasonText("as in the conversation")).toBe("as in the conversation");
    locale.value = "zh";
    expect(reasonText("as in the conversation")).toBe("与对话一致");
    expect(reasonText("shop.py: read 2 counted from the newest, 1 stay")).toBe("shop.py：从最新数起第 2 次读取，只保留 1 次");
    expect(translateReason("who the agent is and how it works; next step ready")).toBe("智能体是谁、如何工作；下一步 ready");
    expect(translateReason("something new")).toBe("something new");
    const step = "not needed for long, folded with 1,204 others: 3,000 tokens less on every call, ";
    const start = "很久没有用到，与另外 1,204 个结果一起折叠：每次调用少 3,000 个 token，";
    expect(translateReason(`${step}9,500 written to the cache again`)).toBe(`${start}9,500 个重新写入缓存`);
    expect(translateReason(`${step}the provider has no cache that it could break`)).toContain("服务商没有会因此失效的缓存");
    expect(translateReason(`${step}nothing of the page was in the cache (first call)`)).toContain("（first call）");
    expect(ruleText("X2", "folding by cost")).toBe("按成本折叠");
    expect(ruleText("F1", "reminder")).toBe("提醒");
    expect(ruleText("X9", "of a plugin")).toBe("of a plugin");
  });

  test("notes of a preview do not repeat its next step", () => {
    const notes = [
      "A run would run tools first; this page has no results of them.",
      "A run is at work on this thread: what it says before the next one begins is not in this page.",
      "The tool collect_address would act on the client's answer first; here ...",
    ];
    expect(noteTexts(notes)).toHaveLength(2);
    locale.value = "zh";
    expect(noteTexts(notes)[1]).toContain("工具 collect_address 会先");
  });
});

describe("URLs", () => {
  test("a preview has a URL", () => {
    expect(readRoute("#/threads/t%201/preview")).toEqual({ view: "preview", thread: "t 1" });
    expect(linkTo({ view: "preview", thread: "t 1" })).toBe("#/threads/t%201/preview");
  });
});
