/** The calls of a thread in the order they were made: which is shown, what is before and behind it. */

import type { CallPlace, ThreadCall } from "../../../api/calls.ts";

export function isAt(call: CallPlace, place: CallPlace): boolean {
  return call.run === place.run && call.n === place.n;
}

/** The call that an address names; without a number the run's last reply, or its last call where it has none. */
export function chosenCall(calls: readonly ThreadCall[], run: string, n: number | null): ThreadCall | null {
  const mine = calls.filter((call) => call.run === run);
  if (n !== null) return mine.find((call) => call.n === n) ?? null;
  return mine.findLast((call) => call.purpose === "reply") ?? mine.at(-1) ?? null;
}

export interface Neighbours {
  readonly previous: ThreadCall | null;
  readonly next: ThreadCall | null;
}

export function neighboursOf(calls: readonly ThreadCall[], place: CallPlace): Neighbours {
  const at = calls.findIndex((call) => isAt(call, place));
  if (at < 0) return { previous: null, next: null };
  return { previous: calls[at - 1] ?? null, next: calls[at + 1] ?? null };
}

/** What a call is held against: the one before it for the same purpose, as a summary has little of a reply. */
export function callBefore(calls: readonly ThreadCall[], place: CallPlace): ThreadCall | null {
  const at = calls.findIndex((call) => isAt(call, place));
  const purpose = calls[at]?.purpose;
  return calls.slice(0, Math.max(at, 0)).findLast((call) => call.purpose === purpose) ?? null;
}

/** How many calls a run has, as far as they are known. */
export function countOf(calls: readonly ThreadCall[], run: string): number {
  return calls.filter((call) => call.run === run).length;
}
