/** The page part by part, in its order: what was decided of each, by which rule, and why. */

import { useSignal, type ReadonlySignal } from "@preact/signals";

import type { Decision, Part } from "../../../api/calls.ts";
import { formatNumber } from "../../../language/language.ts";
import type { Later } from "../later.ts";
import type { Originals } from "./originals.ts";
import { Paged } from "./paged.tsx";
import { PartItem } from "./part_item.tsx";
import { decisionsOf, partRows, rowsDecided, rowsOf, type Row, type StretchRow } from "./part_rows.ts";
import "./parts.css";
import { words } from "../words.ts";

/** What parts are drawn from: the bytes they were sent in, and what was said before. */
export interface Sources {
  readonly bytes: Later<Uint8Array>;
  readonly originals: ReadonlySignal<Originals>;
}

export function PartList({ parts, sources }: { parts: readonly Part[]; sources: Sources }) {
  const only = useSignal<Decision | null>(null);
  const rows = only.value === null ? rowsOf(parts) : rowsDecided(parts, only.value);
  return (
    <section class="parts">
      <h2>{words.value.parts}</h2>
      <DecisionChoice
        parts={parts}
        chosen={only.value}
        onChoose={(decision) => {
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
  readonly chosen: Decision | null;
  readonly onChoose: (decision: Decision | null) => void;
}

function DecisionChoice({ parts, chosen, onChoose }: ChoiceProps) {
  const text = words.value;
  const counts = decisionsOf(parts);
  if (counts.size < 2) return null;
  const choices: readonly (readonly [Decision | null, string, number])[] = [
    [null, text.all, parts.length],
    ...[...counts].map(([decision, count]) => [decision, text.decisions[decision], count] as const),
  ];
  return (
    <div class="decisions" role="group" aria-label={text.show}>
      {choices.map(([decision, name, count]) => (
        <button key={name} type="button" aria-pressed={decision === chosen} onClick={() => onChoose(decision)}>
          {name} <span class="soft">{formatNumber(count)}</span>
        </button>
      ))}
    </div>
  );
}

function RowItem({ row, sources }: { row: Row; sources: Sources }) {
  if (row.type === "stretch") return <StretchItem row={row} sources={sources} />;
  return <PartItem place={row.place} part={row.part} sources={sources} />;
}

/** Many that are plainly kept: one line until somebody wants to see them. */
function StretchItem({ row, sources }: { row: StretchRow; sources: Sources }) {
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
          {text.stretch[row.of](formatNumber(row.parts.length))}
          <span class="soft"> · {text.stretchWhy[row.of]}</span>
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
