/** Raw request of a call, and a curl command for it. Both contain no secrets. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import type { Call } from "../../api/calls.ts";
import { formatBytes, formatNumber, formatPrice, formatSeconds, formatTime } from "../../language/language.ts";
import { CopyButton } from "../../parts/clipboard.tsx";
import { Icon } from "../../parts/icon.tsx";
import { savedOf } from "./parts/composition.tsx";
import { pretty, textOf } from "./parts/page_bytes.ts";
import type { LazyValue } from "./state.ts";
import { words as common } from "./words.ts";
import { words } from "./figure_words.ts";

/** Characters to show at first. A page can have megabytes. */
const INITIAL_LENGTH = 200_000;

export function RawRequest({ bytes }: { bytes: LazyValue<Uint8Array> }) {
  const text = words.value;
  return (
    <Source title={text.request} about={text.requestAbout} source={bytes}>
      {(value: Uint8Array) => <Code name="raw-request" text={pretty(textOf(value))} />}
    </Source>
  );
}

export function CurlCommand({ curl }: { curl: LazyValue<string> }) {
  const text = words.value;
  return (
    <Source title={text.curl} about={text.curlAbout} source={curl}>
      {(value: string) => <Code name="curl" text={value} />}
    </Source>
  );
}

interface SourceProps<Value> {
  readonly title: string;
  readonly about: string;
  readonly source: LazyValue<Value>;
  readonly children: (value: Value) => ComponentChildren;
}

function Source<Value>({ title, about, source, children }: SourceProps<Value>) {
  useEffect(() => source.load(), [source]);
  const value = source.value.value;
  return (
    <section class="source">
      <h2>{title}</h2>
      <p class="soft small">{about}</p>
      {source.problem.value && <p class="problem small">{source.problem.value}</p>}
      {value === null && !source.problem.value && <p class="soft small">{common.value.loading}</p>}
      {value !== null && children(value)}
    </section>
  );
}

function Code({ name, text }: { name: string; text: string }) {
  const isWrapped = useSignal(true);
  const isExpanded = useSignal(text.length <= INITIAL_LENGTH);
  return (
    <>
      <div class="source-bar">
        <CopyButton text={() => text} />
        <label class="small">
          <input
            type="checkbox"
            checked={isWrapped.value}
            onChange={(event) => {
              isWrapped.value = event.currentTarget.checked;
            }}
          />{" "}
          {words.value.wrap}
        </label>
      </div>
      <pre class={isWrapped.value ? `${name} wrapped` : name} tabIndex={0}>
        {isExpanded.value ? text : text.slice(0, INITIAL_LENGTH)}
      </pre>
      {!isExpanded.value && (
        <button
          type="button"
          onClick={() => {
            isExpanded.value = true;
          }}
        >
          {words.value.showAll(formatNumber(text.length))}
        </button>
      )}
    </>
  );
}

export function Figures({ call }: { call: Call }) {
  const text = words.value;
  const { usage } = call;
  return (
    <section class="figures">
      <h2>{text.figures}</h2>
      {call.error && <p class="problem">{text.failed(call.error)}</p>}
      <dl>
        <Figure name={text.input}>{formatTokens(usage?.inputTokens)}</Figure>
        <Figure name={text.output}>{formatTokens(usage?.outputTokens)}</Figure>
        <Figure name={text.cached}>{formatTokens(usage?.cachedInputTokens)}</Figure>
        <Figure name={text.cacheWrite}>{formatTokens(usage?.cacheWriteInputTokens)}</Figure>
        <Figure name={text.reasoning}>{formatTokens(usage?.reasoningTokens)}</Figure>
        {call.manifest && <Figure name={text.saved}>{formatNumber(savedOf(call.manifest.parts))}</Figure>}
        <Figure name={text.price}>{call.price === null ? text.unknown : formatPrice(call.price)}</Figure>
        <Figure name={text.firstToken}>{elapsed(call.started, call.firstToken)}</Figure>
        <Figure name={text.total}>{call.ended ? elapsed(call.started, call.ended) : text.inProgress}</Figure>
        {call.bytes !== null && <Figure name={text.size}>{formatBytes(call.bytes)}</Figure>}
        <Figure name={text.started}>{formatTime(call.started)}</Figure>
        {call.finish && <Figure name={text.finish}>{call.finish}</Figure>}
      </dl>
      <Digest call={call} />
    </section>
  );
}

function Figure({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Digest({ call }: { call: Call }) {
  const text = words.value;
  const damaged = call.damaged.map((piece) => text.damagedParts[piece] ?? text.segment(piece.slice(0, 12)));
  return (
    <div class="digest">
      <p>
        <span class="soft">{text.digest}</span> <code title={call.digest}>{call.digest}</code>
      </p>
      {call.verified ? (
        <p class="badge success">
          <Icon name="check" />
          {text.verified}
        </p>
      ) : (
        <p class="problem">
          {text.damaged(damaged.join(", "))}. {text.damagedHelp}
        </p>
      )}
    </div>
  );
}

function formatTokens(tokens: number | null | undefined): string {
  return typeof tokens === "number" ? formatNumber(tokens) : words.value.unknown;
}

function elapsed(started: string, moment: string | null): string {
  return moment === null ? words.value.unknown : formatSeconds(Date.parse(moment) - Date.parse(started));
}
