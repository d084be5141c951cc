/** What was saved in a period that a person chose. Of two questions the later one is answered. */

import { signal } from "@preact/signals";

import { ApiError } from "../../api/request.ts";
import { getSavings, type Savings } from "../../api/routes.ts";

/** In days, today with them; null: all there ever was. */
export const PERIODS: readonly (number | null)[] = [7, 30, 90, null];
const BEGINNING = "2000-01-01";

export class SavingsState {
  readonly savings = signal<Savings | null>(null);
  readonly days = signal<number | null>(30);
  readonly agent = signal<string | null>(null);
  /** Those that something is known of, whichever is chosen. */
  readonly agents = signal<readonly string[]>([]);
  readonly problem = signal<string | null>(null);
  #asked = 0;

  async load(): Promise<void> {
    const asked = ++this.#asked;
    this.problem.value = null;
    try {
      const found = await getSavings(sinceDay(this.days.value, new Date()), this.agent.value);
      if (asked !== this.#asked) return;
      const names = [...found.rules, ...found.breaks].map(({ agent }) => agent);
      this.agents.value = [...new Set([...this.agents.value, ...names])].sort();
      this.savings.value = found;
    } catch (error) {
      if (asked === this.#asked) this.problem.value = error instanceof ApiError ? error.detail : String(error);
    }
  }
}

/** The first day of so many up to now, in UTC, as the server counts them. */
export function sinceDay(days: number | null, now: Date): string {
  if (days === null) return BEGINNING;
  return new Date(now.getTime() - (days - 1) * 86_400_000).toISOString().slice(0, 10);
}
