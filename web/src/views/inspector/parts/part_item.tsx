/** Part of a page: text, tokens, decision and reason. Its bytes and original open on demand. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Decision, Part, Span } from "../../../api/calls.ts";
import { formatNumber } from "../../../language/language.ts";
import { CopyButton } from "../../../parts/clipboard.tsx";
import { Icon } from "../../../parts/icon.tsx";
import { isReadable, type LazyValue } from "../state.ts";
import { words } from "../words.ts";
import { kindOf } from "./composition.tsx";
import { excerpt, type Original, originalOf } from "./originals.ts";
import { readable, textAt } from "./page_bytes.ts";
import { Paged } from "./paged.tsx";
import type { Sources } from "./part_list.tsx";
import { reasonText, ruleText } from "./reasons.ts";

/** Decisions that remove all or some of a part from the page. */
const LEFT_OUT: readonly Decision[] = ["folded", "cut", "dropped"];

interface Props {
  readonly place: number;
  readonly part: Part;
  readonly sources: Sources;
}

export function PartItem({ place, part, sources }: Props) {
  const isOpen = useSignal(false);
  const isOriginalShown = useSignal(false);
  // Messages change often during a run, so kept parts skip the lookup.
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

function isLeftOut(part: Pick<Part, "decision">): boolean {
  return LEFT_OUT.includes(part.decision);
}

function Words({ part, originals }: { part: Part; originals: readonly Original[] }) {
  const text = words.value;
  if (!isLeftOut(part)) return <>{part.words}</>;
  const first = originals[0];
  const count = part.count && part.count > 1 ? `${text.originals(formatNumber(part.count))}: ` : "";
  const original = count + (first ? excerpt(first.text) : (part.words ?? ""));
  const isReplaced = part.words !== null && first !== undefined && part.decision === "folded";
  return (
    <>
      <del>{original || part.source}</del>
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
          <span class="visually-hidden">{words.value.before(formatNumber(before))}, </span>
        </span>
      )}
      {formatNumber(after)}
    </span>
  );
}

/** Rule of a decision and its reason. */
export function Why({ part }: { part: Pick<Part, "rule" | "ruleName" | "reason"> }) {
  const name = part.rule ? ruleText(part.rule, part.ruleName) : "";
  return (
    <span class="reason">
      {part.rule && (
        <span class="rule">
          {words.value.rule(part.rule)}
          {name && ` · ${name}`}
        </span>
      )}{" "}
      {reasonText(part.reason)}
    </span>
  );
}

/** Return the role of a part, or the name of its tool. */
export function nameOf(part: Pick<Part, "kind" | "role" | "source">): string {
  const { roles } = words.value;
  if (part.kind === "tool") return `${roles.tool} ${part.source}`;
  if (part.kind !== "message") return roles[part.kind];
  const kind = kindOf(part);
  return kind === "tools" || kind === "summary" || kind === "quote" ? roles.other : roles[kind];
}

function SentText({ span, bytes }: { span: Span | null; bytes: LazyValue<Uint8Array> }) {
  const text = words.value;
  if (span === null) return <p class="part-text soft small">{text.nothingSent}</p>;
  return (
    <div class="part-text">
      <div class="part-text-bar">
        <span class="soft small">
          {text.asSent}, {text.bytes(formatNumber(span[0]), formatNumber(span[1]))}
        </span>
        <button
          type="button"
          class="quiet"
          aria-pressed={isReadable.value}
          onClick={() => {
            isReadable.value = !isReadable.value;
          }}
        >
          {text.readable}
        </button>
        {bytes.value.value && <CopyButton text={() => displayText(bytes.value.value as Uint8Array, span)} />}
      </div>
      <Bytes span={span} bytes={bytes} />
    </div>
  );
}

function Bytes({ span, bytes }: { span: Span; bytes: LazyValue<Uint8Array> }) {
  useEffect(() => bytes.load(), [bytes]);
  if (bytes.problem.value) return <p class="problem small">{bytes.problem.value}</p>;
  const all = bytes.value.value;
  if (all === null) return <p class="soft small">{words.value.loading}</p>;
  return <pre tabIndex={0}>{displayText(all, span)}</pre>;
}

function displayText(bytes: Uint8Array, span: Span): string {
  const text = textAt(bytes, span);
  return isReadable.value ? readable(text) : text;
}

function OriginalText({ originals }: { originals: readonly Original[] }) {
  const text = words.value;
  if (!originals.length) return <p class="part-text soft small">{text.originalMissing}</p>;
  return (
    <div class="part-text original">
      <p class="soft small">{text.originalAbout}</p>
      <ul>
        <Paged items={originals}>
          {(original) => (
            <li key={original.id}>
              {originals.length > 1 && (
                <p class="small">{text.roles[original.role === "tool" ? "results" : original.role]}</p>
              )}
              <pre tabIndex={0}>{original.text}</pre>
            </li>
          )}
        </Paged>
      </ul>
    </div>
  );
}
