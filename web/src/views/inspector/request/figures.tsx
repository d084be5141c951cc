/** What a call used, what it cost, how long it took, and that what is shown is what was sent. */

import type { ComponentChildren } from "preact";

import type { Call } from "../../../api/calls.ts";
import { formatBytes, formatNumber, formatPrice, formatSeconds, formatTime } from "../../../language/language.ts";
import { Icon } from "../../../parts/icon.tsx";
import { savedOf } from "../parts/composition.ts";
import { words } from "./figure_words.ts";

export function Figures({ call }: { call: Call }) {
  const text = words.value;
  const { usage } = call;
  return (
    <section class="figures">
      <h2>{text.figures}</h2>
      {call.error && <p class="problem">{text.failed(call.error)}</p>}
      <dl>
        <Figure name={text.input}>{counted(usage?.inputTokens)}</Figure>
        <Figure name={text.output}>{counted(usage?.outputTokens)}</Figure>
        <Figure name={text.cached}>{counted(usage?.cachedInputTokens)}</Figure>
        <Figure name={text.cacheWrite}>{counted(usage?.cacheWriteInputTokens)}</Figure>
        <Figure name={text.reasoning}>{counted(usage?.reasoningTokens)}</Figure>
        {call.manifest && <Figure name={text.saved}>{formatNumber(savedOf(call.manifest.parts))}</Figure>}
        <Figure name={text.price}>{call.price === null ? text.unknown : formatPrice(call.price)}</Figure>
        <Figure name={text.firstToken}>{since(call.started, call.firstToken)}</Figure>
        <Figure name={text.total}>{call.ended ? since(call.started, call.ended) : text.underWay}</Figure>
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
  const damaged = call.damaged.map((what) => text.damagedParts[what] ?? text.segment(what.slice(0, 12)));
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
          {text.damaged(damaged.join(", "))}. {text.damagedWhy}
        </p>
      )}
    </div>
  );
}

function counted(tokens: number | null | undefined): string {
  return typeof tokens === "number" ? formatNumber(tokens) : words.value.unknown;
}

function since(started: string, moment: string | null): string {
  return moment === null ? words.value.unknown : formatSeconds(Date.parse(moment) - Date.parse(started));
}
