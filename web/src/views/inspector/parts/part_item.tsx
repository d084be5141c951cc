/** One part: what it is, how it begins, what it costs, what was decided and why; its bytes and original on demand. */

import { useSignal } from "@preact/signals";

import type { Part } from "../../../api/calls.ts";
import { formatNumber } from "../../../language/language.ts";
import { Icon } from "../../../parts/icon.tsx";
import { kindOf } from "./composition.ts";
import { beginning, originalOf, type Original } from "./originals.ts";
import type { Sources } from "./part_list.tsx";
import { isLeftOut } from "./part_rows.ts";
import { OriginalText, SentText } from "./part_text.tsx";
import { reasonInWords, ruleInWords } from "./reasons.ts";
import { words } from "../words.ts";

interface Props {
  readonly place: number;
  readonly part: Part;
  readonly sources: Sources;
}

export function PartItem({ place, part, sources }: Props) {
  const isOpen = useSignal(false);
  const isOriginalShown = useSignal(false);
  // While an answer is written messages change all the time: what is kept has no need to know.
  const originals = part.decision === "kept" ? [] : originalOf(part, sources.originals.value);
  const text = words.value;
  return (
    <li class={`part kind-${kindOf(part)} ${part.decision}`}>
      <button
        type="button"
        class="part-button"
        aria-expanded={isOpen.value}
        onClick={() => {
          isOpen.value = !isOpen.value;
        }}
      >
        <span class="place">{place + 1}</span>
        <span class="what">
          <span class="kind">{nameOf(part)}</span>
          <span class="words">
            <Words part={part} originals={originals} />
          </span>
        </span>
        <Tokens part={part} />
      </button>
      <div class="why">
        <span class={`decision ${part.decision}`}>{text.decisions[part.decision]}</span>
        <Why part={part} />
        {isLeftOut(part) && (
          <button
            type="button"
            class="quiet"
            aria-expanded={isOriginalShown.value}
            onClick={() => {
              isOriginalShown.value = !isOriginalShown.value;
            }}
          >
            <Icon name="undo" />
            {text.original}
          </button>
        )}
      </div>
      {isOriginalShown.value && <OriginalText originals={originals} />}
      {isOpen.value && <SentText span={part.span} bytes={sources.bytes} />}
    </li>
  );
}

function Words({ part, originals }: { part: Part; originals: readonly Original[] }) {
  const text = words.value;
  if (!isLeftOut(part)) return <>{part.words}</>;
  const first = originals[0];
  const count = part.count && part.count > 1 ? `${text.originals(formatNumber(part.count))}: ` : "";
  const was = count + (first ? beginning(first.text) : (part.words ?? ""));
  const isReplaced = part.words !== null && first !== undefined && part.decision === "folded";
  return (
    <>
      <del>{was || part.source}</del>
      {isReplaced && (
        <span class="instead">
          <span class="soft">{text.sentAs}</span> {part.words}
        </span>
      )}
    </>
  );
}

function Tokens({ part }: { part: Part }) {
  const { before, after } = part.tokens;
  return (
    <span class="figure">
      {before !== after && (
        <span class="soft before">
          <span aria-hidden="true">{formatNumber(before)} → </span>
          <span class="hidden-but-read">{words.value.before(formatNumber(before))}, </span>
        </span>
      )}
      {formatNumber(after)}
    </span>
  );
}

/** The rule by number and name, and what that came to. */
export function Why({ part }: { part: Pick<Part, "rule" | "ruleName" | "reason"> }) {
  const name = part.rule ? ruleInWords(part.rule, part.ruleName) : "";
  return (
    <span class="reason">
      {part.rule && (
        <span class="rule">
          {words.value.rule(part.rule)}
          {name && ` · ${name}`}
        </span>
      )}{" "}
      {reasonInWords(part.reason)}
    </span>
  );
}

/** Whose it is or what; a tool by its own name. */
export function nameOf(part: Pick<Part, "kind" | "role" | "source">): string {
  const { roles } = words.value;
  if (part.kind === "tool") return `${roles.tool} ${part.source}`;
  if (part.kind !== "message") return roles[part.kind];
  const kind = kindOf(part);
  return kind === "tools" || kind === "summary" || kind === "quote" ? roles.other : roles[kind];
}
