/** Parts of a page in order, with a filter by decision. */

import { type ReadonlySignal, useSignal } from "@preact/signals";

import type { Decision, Part } from "../../../api/calls.ts";
import { formatNumber } from "../../../language/language.ts";
import type { LazyValue } from "../state.ts";
import { words } from "../words.ts";
import { tokensOf } from "./composition.tsx";
import type { Originals } from "./originals.ts";
import { Paged } from "./paged.tsx";
import { PartItem } from "./part_item.tsx";
import "./parts.css";

/** Data for parts: the bytes of the page and the original messages. */
export interface Sources {
  readonly bytes: LazyValue<Uint8Array>;
  readonly originals: ReadonlySignal<Originals>;
}

export function PartList({ parts, sources }: { parts: readonly Part[]; sources: Sources }) {
  const only = useSignal<Decision | null>(null);
  const rows = only.value === null ? rowsOf(parts) : rowsByDecision(parts, only.value);
  return (
    <section class="parts">
      <h2>{words.value.parts}</h2>
      <DecisionChoice
        parts={parts}
        selected={only.value}
        onSelect={(decision) => {
          only.value = decision;
        }}
      />
      <ol key={only.value}>
        <Paged items={rows}>{(row) => <RowItem key={row.place} row={row} sources={sources} />}</Paged>
      </ol>
    </section>
  );
}

interface ChoiceProps {
  readonly parts: readonly Part[];
  readonly selected: Decision | null;
  readonly onSelect: (decision: Decision | null) => void;
}

function DecisionChoice({ parts, selected, onSelect }: ChoiceProps) {
  const text = words.value;
  const counts = decisionsOf(parts);
  if (counts.size < 2) return null;
  const choices: readonly (readonly [Decision | null, string, number])[] = [
    [null, text.all, parts.length],
    ...[...counts].map(([decision, count]) => [decision, text.decisions[decision], count] as const),
  ];
  return (
    <div class="decisions" role="group" aria-label={text.filter}>
      {choices.map(([decision, name, count]) => (
        <button key={name} type="button" aria-pressed={decision === selected} onClick={() => onSelect(decision)}>
          {name} <span class="soft">{formatNumber(count)}</span>
        </button>
      ))}
    </div>
  );
}

function RowItem({ row, sources }: { row: Row; sources: Sources }) {
  if (row.type === "range") return <RangeItem row={row} sources={sources} />;
  return <PartItem place={row.place} part={row.part} sources={sources} />;
}

/** A range of kept parts, collapsed to one line. */
function RangeItem({ row, sources }: { row: RangeRow; sources: Sources }) {
  const isOpen = useSignal(false);
  const text = words.value;
  return (
    <li class="stretch">
      <button
        type="button"
        class="stretch-button"
        aria-expanded={isOpen.value}
        onClick={() => {
          isOpen.value = !isOpen.value;
        }}
      >
        <span class="place">{`${row.place + 1}–${row.place + row.parts.length}`}</span>
        <span class="what">
          {text.range[row.of](formatNumber(row.parts.length))}
          <span class="soft"> · {text.rangeReason[row.of]}</span>
        </span>
        <span class="figure">{formatNumber(row.tokens)}</span>
      </button>
      {isOpen.value && (
        <ol>
          <Paged items={partRows(row.parts, row.place)}>
            {({ place, part }) => <PartItem key={place} place={place} part={part} sources={sources} />}
          </Paged>
        </ol>
      )}
    </li>
  );
}

interface PartRow {
  readonly type: "part";
  readonly place: number;
  readonly part: Part;
}

interface RangeRow {
  readonly type: "range";
  readonly place: number;
  readonly of: "tools" | "messages";
  readonly parts: readonly Part[];
  readonly tokens: number;
}

type Row = PartRow | RangeRow;

/** Shorter ranges are faster to read than to open. */
export const MIN_RANGE = 8;

export function rowsOf(parts: readonly Part[]): Row[] {
  const rows: Row[] = [];
  for (let place = 0; place < parts.length; ) {
    const end = endOfRange(parts, place);
    if (end - place >= MIN_RANGE) rows.push(rangeRow(parts.slice(place, end), place));
    else rows.push(...partRows(parts.slice(place, end), place));
    place = end;
  }
  return rows;
}

function partRows(parts: readonly Part[], first: number): PartRow[] {
  return parts.map((part, at) => ({ type: "part", place: first + at, part }));
}

/** Return the parts with a decision, each at its index in the page. */
export function rowsByDecision(parts: readonly Part[], decision: Decision): PartRow[] {
  return partRows(parts, 0).filter((row) => row.part.decision === decision);
}

/** Count parts by decision. */
export function decisionsOf(parts: readonly Part[]): Map<Decision, number> {
  const counts = new Map<Decision, number>();
  for (const { decision } of parts) counts.set(decision, (counts.get(decision) ?? 0) + 1);
  return counts;
}

/** Return the end of the range of unchanged parts of one kind. It has at least one part. */
function endOfRange(parts: readonly Part[], start: number): number {
  const first = parts[start] as Part;
  if (!isPlain(first)) return start + 1;
  let end = start + 1;
  while (end < parts.length && isPlain(parts[end] as Part) && parts[end]?.kind === first.kind) end += 1;
  return end;
}

function isPlain(part: Part): boolean {
  return part.decision === "kept" && (part.kind === "message" || part.kind === "tool");
}

function rangeRow(parts: readonly Part[], place: number): RangeRow {
  return {
    type: "range",
    place,
    of: parts[0]?.kind === "tool" ? "tools" : "messages",
    parts,
    tokens: tokensOf(parts),
  };
}
