/** Changes since the previous call: the prefix break, then every part that was added, removed or changed. */

import { useEffect } from "preact/hooks";

import type { Difference, DifferenceRow, Part, PrefixBreak } from "../../api/calls.ts";
import { formatNumber } from "../../language/language.ts";
import { Icon } from "../../parts/icon.tsx";
import { causeText, words } from "./change_words.ts";
import { kindOf } from "./parts/composition.tsx";
import { Paged } from "./parts/paged.tsx";
import { nameOf, Why } from "./parts/part_item.tsx";
import { reasonText } from "./parts/reasons.ts";
import type { OpenCall } from "./state.ts";
import { words as common } from "./words.ts";

export function Changes({ open, place }: { open: OpenCall; place: string | null }) {
  const { difference, before } = open;
  useEffect(() => difference.load(), [difference]);
  const text = words.value;
  const value = difference.value.value;
  return (
    <section class="changes">
      <h2>{text.changes}</h2>
      {before === null && <p class="soft">{text.first}</p>}
      {before !== null && place && <p class="soft small">{text.against(place)}</p>}
      {difference.problem.value && <p class="problem">{difference.problem.value}</p>}
      {before !== null && !value && !difference.problem.value && <p class="soft">{common.value.loading}</p>}
      {value && <DifferenceView difference={value} />}
    </section>
  );
}

function DifferenceView({ difference }: { difference: Difference }) {
  const text = words.value;
  const breakIndex = breakRow(difference);
  return (
    <>
      {difference.prefixBreak ? (
        <PrefixBreakBox prefixBreak={difference.prefixBreak} offset={difference.firstDifference?.offset ?? null} />
      ) : (
        <p class="cache-holds">
          <Icon name="check" />
          {difference.identical ? text.identical : text.reused}
        </p>
      )}
      <ol class="change-rows">
        <Paged items={difference.parts.map((row, at) => ({ row, at }))}>
          {({ row, at }) => (
            <ChangeItem
              key={at}
              row={row}
              into={at === breakIndex ? (difference.firstDifference?.before?.into ?? 0) : null}
            />
          )}
        </Paged>
      </ol>
    </>
  );
}

function PrefixBreakBox({ prefixBreak, offset }: { prefixBreak: PrefixBreak; offset: number | null }) {
  const text = words.value;
  return (
    <div class="cache-break">
      <p>
        <Icon name="warning" />
        <strong>{text.broken}</strong>
      </p>
      <p class="cause">{causeText(prefixBreak.cause)}</p>
      {offset !== null && <p class="small">{text.brokenAt(formatNumber(offset))}</p>}
      <dl>
        <div>
          <dt>{text.bytesKept}</dt>
          <dd>{formatNumber(prefixBreak.bytesKept)}</dd>
        </div>
        <div>
          <dt>{text.tokensAgain}</dt>
          <dd>{formatNumber(prefixBreak.tokensAgain)}</dd>
        </div>
      </dl>
      <p class="small">{text.tokensAgainHelp}</p>
    </div>
  );
}

/** `into` is the offset of the break within this part, or null if it is elsewhere. */
function ChangeItem({ row, into }: { row: DifferenceRow; into: number | null }) {
  const text = words.value;
  if (row.change === "same") {
    return (
      <li class="change same">
        <span class="sign" aria-hidden="true">
          =
        </span>
        <span class="what">{text.same(formatNumber(row.count ?? 0))}</span>
        <span class="figure">{formatNumber(row.tokens ?? 0)}</span>
        {into !== null && <BreakMark into={into} />}
      </li>
    );
  }
  const part = (row.after ?? row.before) as Part;
  return (
    <li class={`change ${row.change} kind-${kindOf(part)}`}>
      <span class="sign" aria-hidden="true">
        {SIGNS[row.change]}
      </span>
      <span class="what">
        <span class={`change-name ${row.change}`}>{text.changeNames[row.change]}</span>{" "}
        <span class="kind">{nameOf(part)}</span> <PartText row={row} part={part} />
      </span>
      <Tokens row={row} />
      <Reason row={row} part={part} />
      {into !== null && <BreakMark into={into} />}
    </li>
  );
}

const SIGNS = { added: "+", gone: "−", changed: "~" } as const;

function PartText({ row, part }: { row: DifferenceRow; part: Part }) {
  return <span class="words">{row.change === "gone" ? <del>{part.words}</del> : part.words}</span>;
}

function Tokens({ row }: { row: DifferenceRow }) {
  const [before, after] = [row.before?.tokens.after, row.after?.tokens.after];
  const isChanged = before !== undefined && after !== undefined && before !== after;
  return (
    <span class="figure">
      {isChanged && <span class="soft">{formatNumber(before)} → </span>}
      {formatNumber(after ?? before ?? 0)}
    </span>
  );
}

function Reason({ row, part }: { row: DifferenceRow; part: Part }) {
  const text = words.value;
  const fields = (row.fields ?? []).map((field) => text.fields[field] ?? field);
  return (
    <span class="why">
      {fields.length > 0 && <span class="fields">{text.fieldsChanged(fields.join(text.fieldComma))}</span>}
      {row.instead ? (
        <span>{text.instead(formatNumber(row.instead.count ?? 1), reasonText(row.instead.reason))}</span>
      ) : (
        row.change !== "gone" && <Why part={part} />
      )}
    </span>
  );
}

function BreakMark({ into }: { into: number }) {
  return (
    <span class="break-mark">
      <Icon name="warning" />
      {words.value.brokenHere(formatNumber(into))}
    </span>
  );
}

/** Return the index of the row with the first changed byte, or -1 without a prefix break. */
export function breakRow(difference: Difference): number {
  const place = difference.firstDifference?.before?.place;
  if (!difference.prefixBreak || place === undefined) return -1;
  return difference.parts.findIndex(({ places: { before } }) => before && before[0] <= place && place < before[1]);
}
