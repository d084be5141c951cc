/** Savings: totals and periods. */

import { describe, expect, test } from "vitest";

import type { Savings } from "../src/api/routes.ts";
import { byAgent, byCause, byRule, firstDay, netOf, totalOf } from "../src/views/savings/savings_state.ts";

const rule = (agent: string, rule: string, tokens: number, saved: number | null, cost: number | null) => ({
  ...{ agent, rule, tokens, saved, cost },
  ...{ ruleName: null, ruleLink: null, calls: 1 },
});
const SAVINGS: Savings = {
  since: "2026-11-01",
  until: "2026-11-18",
  currency: "USD",
  rules: [rule("a", "R2", 10, 5, 7), rule("a", "X2", 100, 50, 10), rule("b", "X2", 1, null, null)],
  breaks: [
    { agent: "a", cause: "turn_closed", breaks: 2, tokens: 3, cost: 4 },
    { agent: "b", cause: "turn_closed", breaks: 1, tokens: 1, cost: null },
    { agent: "a", cause: "fold_step", breaks: 1, tokens: 9, cost: 17 },
  ],
};

describe("sums", () => {
  test.each([
    ["by rule", byRule(SAVINGS), ["X2 2 101 40", "R2 1 10 -2"]],
    ["by agent", byAgent(SAVINGS), ["a 2 110 38", "b 1 1 null"]],
    ["by cause", byCause(SAVINGS), ["fold_step 1 9 null", "turn_closed 3 4 null"]],
    ["of everything", [totalOf(byRule(SAVINGS))], [" 3 111 38"]],
    ["of nothing", [totalOf([])], [" 0 0 null"]],
  ])("%s", (_, sums, expected) => {
    expect(sums.map((sum) => `${sum.name} ${sum.count} ${sum.tokens} ${netOf(sum)}`)).toEqual(expected);
  });

  test("an unknown cost counts as zero in a total", () => {
    expect(byCause(SAVINGS).map(({ cost }) => cost)).toEqual([17, 4]);
  });
});

test("a period includes today", () => {
  const now = new Date("2026-11-18T23:59:00Z");
  expect([1, 7, 30, null].map((days) => firstDay(days, now))).toEqual([
    "2026-11-18",
    "2026-11-12",
    "2026-10-20",
    "2000-01-01",
  ]);
});
