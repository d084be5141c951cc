/** What is other than in the call before: whether the cache holds, and each part that came, went or changed. */

import { useEffect } from "preact/hooks";

import type { Difference, DifferenceRow, Part, PrefixBreak } from "../../../api/calls.ts";
import { formatNumber } from "../../../language/language.ts";
import { Icon } from "../../../parts/icon.tsx";
import { words } from "./change_words.ts";
import "./changes.css";
import { kindOf } from "../parts/composition.ts";
import { breakRow, causeInWords } from "./difference_rows.ts";
import { Paged } from "../parts/paged.tsx";
import { nameOf, Why } from "../parts/part_item.tsx";
import { reasonInWords } from "../parts/reasons.ts";
import type { OpenCall } from "../state.ts";
import { words as common } from "../words.ts";

export function Changes({ open, place }: { open: OpenCall; place: string | null }) {
  const { difference, before } = open;
  useEffect(() => difference.ask(), [difference]);
  const text = words.value;
  const found = difference.value.value;
  return (
    <section class="changes">
      <h2>{text.changes}</h2>
      {before === null && <p class="soft">{text.first}</p>}
      {before !== null && place && <p class="soft small">{text.against(place)}</p>}
      {difference.problem.value && <p class="problem">{difference.problem.value}</p>}
      {before !== null && !found && !difference.problem.value && <p class="soft">{common.value.loading}</p>}
      {found && <Found difference={found} />}
    </section>
  );
}

function Found({ difference }: { difference: Difference }) {
  const text = words.value;
  const broken = breakRow(difference);
  return (
    <>
      {difference.prefixBreak ? (
        <CacheBreak found={difference.prefixBreak} offset={difference.firstDifference?.offset ?? null} />
      ) : (
        <p class="cache-holds">
          <Icon name="check" />
          {difference.identical ? text.identical : text.holds}
        </p>
      )}
      <ol class="change-rows">
        <Paged items={difference.parts.map((row, at) => ({ row, at }))}>
          {({ row, at }) => (
            <ChangeItem
              key={at}
              row={row}
              into={at === broken ? (difference.firstDifference?.before?.into ?? 0) : null}
            />
          )}
        </Paged>
      </ol>
    </>
  );
}

function CacheBreak({ found, offset }: { found: PrefixBreak; offset: number | null }) {
  const text = words.value;
  return (
    <div class="cache-break">
      <p>
        <Icon name="warning" />
        <strong>{text.broken}</strong>
      </p>
      <p class="cause">{causeInWords(found.cause)}</p>
      {offset !== null && <p class="small">{text.brokenAt(formatNumber(offset))}</p>}
      <dl>
        <div>
          <dt>{text.kept}</dt>
          <dd>{formatNumber(found.bytesKept)}</dd>
        </div>
        <div>
          <dt>{text.again}</dt>
          <dd>{formatNumber(found.tokensAgain)}</dd>
        </div>
      </dl>
      <p class="small">{text.againWhy}</p>
    </div>
  );
}

/** `into` is how far into this part the pages part ways; null: they do not in this one. */
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
        <span class="kind">{nameOf(part)}</span> <ChangedWords row={row} part={part} />
      </span>
      <ChangedTokens row={row} />
      <ChangeReason row={row} part={part} />
      {into !== null && <BreakMark into={into} />}
    </li>
  );
}

const SIGNS = { added: "+", gone: "−", changed: "~" } as const;

function ChangedWords({ row, part }: { row: DifferenceRow; part: Part }) {
  return <span class="words">{row.change === "gone" ? <del>{part.words}</del> : part.words}</span>;
}

function ChangedTokens({ row }: { row: DifferenceRow }) {
  const [before, after] = [row.before?.tokens.after, row.after?.tokens.after];
  const isChanged = before !== undefined && after !== undefined && before !== after;
  return (
    <span class="figure">
      {isChanged && <span class="soft">{formatNumber(before)} → </span>}
      {formatNumber(after ?? before ?? 0)}
    </span>
  );
}

function ChangeReason({ row, part }: { row: DifferenceRow; part: Part }) {
  const text = words.value;
  const fields = (row.fields ?? []).map((field) => text.fields[field] ?? field);
  return (
    <span class="why">
      {fields.length > 0 && <span class="fields">{text.whatChanged(fields.join(text.fieldComma))}</span>}
      {row.instead ? (
        <span>{text.instead(formatNumber(row.instead.count ?? 1), reasonInWords(row.instead.reason))}</span>
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
