/** Scales of the call chart. */

import type { ThreadCall } from "../../../api/calls.ts";

export interface Figures {
  readonly call: ThreadCall;
  /** Input tokens as counted by the provider, else by Recto. */
  readonly sent: number;
  readonly cached: number;
  readonly saved: number;
  readonly price: number | null;
}

export function figuresOf(call: ThreadCall): Figures {
  const sent = call.usage?.inputTokens ?? call.tokens ?? 0;
  return {
    call,
    sent,
    cached: Math.min(sent, call.usage?.cachedInputTokens ?? 0),
    saved: call.saved ?? 0,
    price: call.price,
  };
}

export interface Scale {
  readonly top: number;
  readonly height: number;
  readonly max: number;
}

/** Convert a value to a y coordinate. */
export function yAt(value: number, { top, height, max }: Scale): number {
  return max <= 0 ? top + height : top + height * (1 - value / max);
}

interface Slot {
  readonly left: number;
  readonly width: number;
  readonly middle: number;
}

const WIDEST = 48;

/** Return the slot of a bar. Bars share the width, with gaps if there is room. */
export function slotAt(at: number, count: number, left: number, width: number): Slot {
  const room = width / Math.max(count, 1);
  const bar = Math.min(WIDEST, Math.max(1, room * 0.7));
  const middle = left + room * (at + 0.5);
  return { left: middle - bar / 2, width: bar, middle };
}

/** Return the indexes of the calls that have a label. */
export function labelIndexes(count: number, width: number, each = 36): number[] {
  const every = Math.max(1, Math.ceil((count * each) / Math.max(width, 1)));
  return Array.from({ length: count }, (_, at) => at).filter((at) => at % every === 0);
}

/** Format 1,234,567 as 1.2M. */
export function formatShort(value: number): string {
  if (value >= 1e6) return `${formatDecimal(value / 1e6)}M`;
  return value >= 1000 ? `${formatDecimal(value / 1000)}k` : String(value);
}

function formatDecimal(value: number): string {
  return String(Number(value.toFixed(1)));
}
