/** What was saved, added up: by rule, by agent, and breaks by their cause. A price that nobody knows adds nothing. */

import type { Savings } from "../../api/routes.ts";

export interface Sum {
  readonly name: string;
  readonly count: number;
  readonly tokens: number;
  readonly saved: number | null;
  readonly cost: number | null;
}

/** Less what it cost; nothing where no price is known. */
export function netOf(sum: Sum): number | null {
  return sum.saved === null ? null : sum.saved - (sum.cost ?? 0);
}

export function byRule(savings: Savings): readonly Sum[] {
  return added(savings.rules.map((row) => ({ ...row, name: row.rule, count: row.calls })));
}

export function byAgent(savings: Savings): readonly Sum[] {
  return added(savings.rules.map((row) => ({ ...row, name: row.agent, count: row.calls })));
}

export function byCause(savings: Savings): readonly Sum[] {
  return added(savings.breaks.map((row) => ({ ...row, name: row.cause, count: row.breaks, saved: null })));
}

export function totalOf(sums: readonly Sum[]): Sum {
  return sums.reduce(plus, { name: "", count: 0, tokens: 0, saved: null, cost: null });
}

/** One of each name, the most tokens first. */
function added(rows: readonly Sum[]): readonly Sum[] {
  const sums = new Map<string, Sum>();
  for (const { name, count, tokens, saved, cost } of rows) {
    const row = { name, count, tokens, saved, cost };
    const before = sums.get(name);
    sums.set(name, before ? plus(before, row) : row);
  }
  return [...sums.values()].sort((one, other) => other.tokens - one.tokens || one.name.localeCompare(other.name));
}

function plus(one: Sum, other: Sum): Sum {
  return {
    name: one.name,
    count: one.count + other.count,
    tokens: one.tokens + other.tokens,
    saved: known(one.saved, other.saved),
    cost: known(one.cost, other.cost),
  };
}

function known(one: number | null, other: number | null): number | null {
  return one === null && other === null ? null : (one ?? 0) + (other ?? 0);
}
