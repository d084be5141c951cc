/** Threads in the order they come, under the day of their last words. */

import type { ThreadRow } from "../../api/routes.ts";

export type Day = "today" | "yesterday" | "week" | "older";

export interface DayGroup {
  readonly day: Day;
  readonly rows: readonly ThreadRow[];
}

const DAYS: readonly Day[] = ["today", "yesterday", "week", "older"];

export function byDay(rows: readonly ThreadRow[], now: Date): DayGroup[] {
  const groups = DAYS.map((day) => ({ day, rows: rows.filter((row) => dayOf(new Date(row.updated), now) === day) }));
  return groups.filter((group) => group.rows.length);
}

export function dayOf(moment: Date, now: Date): Day {
  const days = Math.round((startOfDay(now) - startOfDay(moment)) / 86_400_000);
  if (days <= 0) return "today";
  if (days === 1) return "yesterday";
  return days < 7 ? "week" : "older";
}

function startOfDay(moment: Date): number {
  return new Date(moment.getFullYear(), moment.getMonth(), moment.getDate()).getTime();
}
