/** Savings of the selected period and agent. Only the answer to the latest request counts. */

import { signal } from "@preact/signals";

import { ApiError } from "../../api/request.ts";
import { getSavings, type Savings } from "../../api/routes.ts";

/** Periods in days including today. Null means all time. */
export const PERIODS: readonly (number | null)[] = [7, 30, 90, null];
const BEGINNING = "2000-01-01";

export class SavingsState {
  readonly savings = signal<Savings | null>(null);
  readonly days = signal<number | null>(30);
  readonly agent = signal<string | null>(null);
  /** Agents that appeared in any answer, so that the list does not shrink. */
  readonly agents = signal<readonly string[]>([]);
  readonly problem = signal<string | null>(null);
  #requests = 0;

  async load(): Promise<void> {
    const request = ++this.#requests;
    this.problem.value = null;
    try {
      const savings = await getSavings(firstDay(this.days.value, new Date()), this.agent.value);
      if (request !== this.#requests) return;
      const names = [...savings.rules, ...savings.breaks].map(({ agent }) => agent);
      this.agents.value = [...new Set([...this.agents.value, ...names])].sort();
      this.savings.value = savings;
    } catch (error) {
      if (request === this.#requests) this.problem.value = error instanceof ApiError ? error.detail : String(error);
    }
  }
}

/** Return the first day of a period in UTC, as the server counts days. */
export function firstDay(days: number | null, now: Date): string {
  if (days === null) return BEGINNING;
  return new Date(now.getTime() - (days - 1) * 86_400_000).toISOString().slice(0, 10);
}

export interface Sum {
  readonly name: string;
  readonly count: number;
  readonly tokens: number;
  readonly saved: number | null;
  readonly cost: number | null;
}

/** Return the savings minus their cost, or null if the price is unknown. */
export function netOf(sum: Sum): number | null {
  return sum.saved === null ? null : sum.saved - (sum.cost ?? 0);
}

export function byRule(savings: Savings): readonly Sum[] {
  return sumByName(savings.rules.map((row) => ({ ...row, name: row.rule, count: row.calls })));
}

export function byAgent(savings: Savings): readonly Sum[] {
  return sumByName(savings.rules.map((row) => ({ ...row, name: row.agent, count: row.calls })));
}

export function byCause(savings: Savings): readonly Sum[] {
  return sumByName(savings.breaks.map((row) => ({ ...row, name: row.cause, count: row.breaks, saved: null })));
}

export function totalOf(sums: readonly Sum[]): Sum {
  return sums.reduce(addSums, { name: "", count: 0, tokens: 0, saved: null, cost: null });
}

/** Sum rows by name, the most tokens first. */
function sumByName(rows: readonly Sum[]): readonly Sum[] {
  const sums = new Map<string, Sum>();
  for (const { name, count, tokens, saved, cost } of rows) {
    const row = { name, count, tokens, saved, cost };
    const before = sums.get(name);
    sums.set(name, before ? addSums(before, row) : row);
  }
  return [...sums.values()].sort((one, other) => other.tokens - one.tokens || one.name.localeCompare(other.name));
}

function addSums(one: Sum, other: Sum): Sum {
  return {
    name: one.name,
    count: one.count + other.count,
    tokens: one.tokens + other.tokens,
    saved: addAmounts(one.saved, other.saved),
    cost: addAmounts(one.cost, other.cost),
  };
}

function addAmounts(one: number | null, other: number | null): number | null {
  return one === null && other === null ? null : (one ?? 0) + (other ?? 0);
}
