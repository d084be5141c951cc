/** What a page is made of: its parts by kind, in the order people think of them. */

import type { Part } from "../../../api/calls.ts";

export const KINDS = ["system", "tools", "summary", "quote", "user", "assistant", "results", "other"] as const;
export type Kind = (typeof KINDS)[number];

export interface Share {
  readonly kind: Kind;
  readonly parts: number;
  readonly tokens: number;
  /** Of all tokens, from 0 to 1. */
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

/** The shares of what was sent; kinds that nothing was sent of are not in it. */
export function compositionOf(parts: readonly Part[]): Share[] {
  const sent = parts.filter((part) => part.span !== null);
  const total = tokensOf(sent);
  return KINDS.flatMap((kind) => {
    const mine = sent.filter((part) => kindOf(part) === kind);
    const tokens = tokensOf(mine);
    return mine.length ? [{ kind, parts: mine.length, tokens, share: total ? tokens / total : 0 }] : [];
  });
}

export function tokensOf(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + part.tokens.after, 0);
}

/** What folding, cutting and leaving out kept out of the page, counted as the server does. */
export function savedOf(parts: readonly Part[]): number {
  return parts
    .filter((part) => part.decision !== "injected")
    .reduce((sum, part) => sum + Math.max(0, part.tokens.before - part.tokens.after), 0);
}

/** A share in whole percent; what is there at all is never shown as nothing. */
export function percent(share: number): string {
  if (share > 0 && share < 0.01) return "<1 %";
  return `${Math.round(share * 100)} %`;
}
