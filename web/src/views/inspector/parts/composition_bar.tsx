/** What a page is made of: a bar to see it at a glance, and the same as a list with figures. */

import type { Part } from "../../../api/calls.ts";
import { formatNumber } from "../../../language/language.ts";
import { compositionOf, percent } from "./composition.ts";
import { words } from "../words.ts";

export function CompositionBar({ parts }: { parts: readonly Part[] }) {
  const shares = compositionOf(parts);
  const text = words.value;
  return (
    <section class="composition">
      <h2>{text.composition}</h2>
      <div class="composition-bar" aria-hidden="true">
        {shares.map(({ kind, tokens, share }) => (
          <span
            key={kind}
            class={`kind-${kind}`}
            style={{ flexGrow: tokens }}
            title={`${text.kinds[kind]}: ${text.tokens(formatNumber(tokens))}, ${percent(share)}`}
          />
        ))}
      </div>
      <ul>
        {shares.map(({ kind, tokens, share }) => (
          <li key={kind}>
            <span class={`swatch kind-${kind}`} aria-hidden="true" />
            <span class="what">{text.kinds[kind]}</span>
            <span class="figure">{formatNumber(tokens)}</span>
            <span class="figure soft">{percent(share)}</span>
          </li>
        ))}
      </ul>
      <p class="soft small">{text.counted}</p>
    </section>
  );
}
