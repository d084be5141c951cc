/** The parts of a page as rows: what was decided stands alone, long stretches of what is plainly kept are one row. */

import type { Decision, Part } from "../../../api/calls.ts";
import { tokensOf } from "./composition.ts";

export interface PartRow {
  readonly type: "part";
  readonly place: number;
  readonly part: Part;
}

export interface StretchRow {
  readonly type: "stretch";
  readonly place: number;
  readonly of: "tools" | "messages";
  readonly parts: readonly Part[];
  readonly tokens: number;
}

export type Row = PartRow | StretchRow;

/** Shorter stretches are read faster than they are opened. */
export const STRETCH = 8;
/** As many rows as are drawn at once; the others are asked for. */
export const AT_ONCE = 100;
/** What is not, or not all, in the page as it is in the conversation. */
export const LEFT_OUT: readonly Decision[] = ["folded", "cut", "dropped"];

export function rowsOf(parts: readonly Part[]): Row[] {
  const rows: Row[] = [];
  for (let place = 0; place < parts.length; ) {
    const end = endOfStretch(parts, place);
    if (end - place >= STRETCH) rows.push(stretch(parts.slice(place, end), place));
    else rows.push(...partRows(parts.slice(place, end), place));
    place = end;
  }
  return rows;
}

export function partRows(parts: readonly Part[], first: number): PartRow[] {
  return parts.map((part, at) => ({ type: "part", place: first + at, part }));
}

/** Only the parts that one thing was decided of, each at the place it has among all. */
export function rowsDecided(parts: readonly Part[], decision: Decision): PartRow[] {
  return partRows(parts, 0).filter((row) => row.part.decision === decision);
}

/** How many parts each thing was decided of; what was decided of none is not in it. */
export function decisionsOf(parts: readonly Part[]): Map<Decision, number> {
  const counts = new Map<Decision, number>();
  for (const { decision } of parts) counts.set(decision, (counts.get(decision) ?? 0) + 1);
  return counts;
}

export function isLeftOut(part: Pick<Part, "decision">): boolean {
  return LEFT_OUT.includes(part.decision);
}

/** The place behind the last part that is plainly kept and of the same kind; at least the next place. */
function endOfStretch(parts: readonly Part[], start: number): number {
  const first = parts[start] as Part;
  if (!isPlain(first)) return start + 1;
  let end = start + 1;
  while (end < parts.length && isPlain(parts[end] as Part) && parts[end]?.kind === first.kind) end += 1;
  return end;
}

function isPlain(part: Part): boolean {
  return part.decision === "kept" && (part.kind === "message" || part.kind === "tool");
}

function stretch(parts: readonly Part[], place: number): StretchRow {
  return {
    type: "stretch",
    place,
    of: parts[0]?.kind === "tool" ? "tools" : "messages",
    parts,
    tokens: tokensOf(parts),
  };
}
