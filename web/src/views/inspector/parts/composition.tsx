/** Composition of a page: tokens by kind of part. */

import type { Part } from "../../../api/calls.ts";
import { formatNumber } from "../../../language/language.ts";
import { words } from "../words.ts";

export const KINDS = ["system", "tools", "summary", "quote", "user", "assistant", "results", "other"] as const;
export type Kind = (typeof KINDS)[number];

interface Share {
  readonly kind: Kind;
  readonly parts: number;
  readonly tokens: number;
  /** Fraction of all tokens, from 0 to 1. */
  readonly share: number;
}

export function kindOf(part: Pick<Part, "kind" | "role">): Kind {
  switch (part.kind) {
    case "system":
    case "prompt":
      return "system";
    case "tool":
      return "tools";
    case "summary":
    case "quote":
      return part.kind;
    case "message":
      return ofRole(part.role);
    default:
      return "other";
  }
}

function ofRole(role: string | null): Kind {
  switch (role) {
    case "user":
    case "assistant":
      return role;
    case "tool":
      return "results";
    case "system":
    case "developer":
      return "system";
    default:
      return "other";
  }
}

/** Return the shares of all kinds that were sent. */
export function compositionOf(parts: readonly Part[]): Share[] {
  const sent = parts.filter((part) => part.span !== null);
  const total = tokensOf(sent);
  return KINDS.flatMap((kind) => {
    const matches = sent.filter((part) => kindOf(part) === kind);
    const tokens = tokensOf(matches);
    return matches.length ? [{ kind, parts: matches.length, tokens, share: total ? tokens / total : 0 }] : [];
  });
}

export function tokensOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + part.tokens.after, 0);
}

/** Sum the tokens that folding, cutting and leaving out saved, counted as on the server. */
export function savedOf(parts: readonly Part[]): number {
  return parts
    .filter((part) => part.decision !== "injected")
    .reduce((sum, part) => sum + Math.max(0, part.tokens.before - part.tokens.after), 0);
}

/** Format a share as a percentage. A share above zero never shows as 0 %. */
export function percent(share: number): string {
  if (share > 0 && share < 0.01) return "<1 %";
  return `${Math.round(share * 100)} %`;
}

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
