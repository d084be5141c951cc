/** Of a difference: the row where the pages part ways, and why, in words. */

import type { Difference } from "../../../api/calls.ts";
import { words } from "./change_words.ts";

/** The place of the row that has the first byte the older page is left at; -1 where the cache holds. */
export function breakRow(difference: Difference): number {
  const place = difference.firstDifference?.before?.place;
  if (!difference.prefixBreak || place === undefined) return -1;
  return difference.parts.findIndex(({ places: { before } }) => before && before[0] <= place && place < before[1]);
}

export function causeInWords(cause: string): string {
  return words.value.causes[cause] ?? words.value.otherCause(cause);
}
