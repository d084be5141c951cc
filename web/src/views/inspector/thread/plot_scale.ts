/** Where things stand in the plot: a bar for each call, and lines at round numbers. */

import type { ThreadCall } from "../../../api/calls.ts";

export interface Figures {
  readonly call: ThreadCall;
  /** As the provider counted them, else as we did. */
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

/** Round numbers from 0 to the first at or above `most`, some four of them. */
export function ticks(most: number, wanted = 4): number[] {
  if (most <= 0) return [0];
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, at) => at * step);
}

export interface Scale {
  readonly top: number;
  readonly height: number;
  readonly most: number;
}

/** From a value to how far down it stands. */
export function yAt(value: number, { top, height, most }: Scale): number {
  return most <= 0 ? top + height : top + height * (1 - value / most);
}

export interface Slot {
  readonly left: number;
  readonly width: number;
  readonly middle: number;
}

const WIDEST = 48;

/** The place of a bar among `count`: bars share the width, with a gap where there is room for one. */
export function slotAt(at: number, count: number, left: number, width: number): Slot {
  const room = width / Math.max(count, 1);
  const bar = Math.min(WIDEST, Math.max(1, room * 0.7));
  const middle = left + room * (at + 0.5);
  return { left: middle - bar / 2, width: bar, middle };
}

/** Which calls have their number written below: all while there is room, else every so many. */
export function labelled(count: number, width: number, each = 36): number[] {
  const every = Math.max(1, Math.ceil((count * each) / Math.max(width, 1)));
  return Array.from({ length: count }, (_, at) => at).filter((at) => at % every === 0);
}

/** 1,234,567 as 1.2M: labels of an axis have no room for more. */
export function short(value: number): string {
  if (value >= 1e6) return `${trimmed(value / 1e6)}M`;
  return value >= 1000 ? `${trimmed(value / 1000)}k` : String(value);
}

function trimmed(value: number): string {
  return String(Number(value.toFixed(1)));
}
