/** Where numbers stand on a chart. Pure: no drawing, no colours. */

export interface Scale {
  readonly least: number;
  readonly most: number;
  /** Round values between, both ends included. */
  readonly ticks: readonly number[];
}

export type Values = readonly (number | null)[];

/** A scale of round steps that holds all values and zero, so that lengths can be compared. */
export function scaleOf(series: readonly Values[], wanted = 4): Scale {
  const numbers = series.flat().filter((value): value is number => value !== null && Number.isFinite(value));
  const least = Math.min(0, ...numbers);
  const most = Math.max(0, ...numbers) || (least < 0 ? 0 : 1);
  const step = roundStep((most - least) / wanted);
  const first = Math.floor(least / step + 1e-9);
  const last = Math.max(Math.ceil(most / step - 1e-9), first + 1);
  const ticks = Array.from({ length: last - first + 1 }, (_, place) => tidy((first + place) * step));
  return { least: ticks[0] as number, most: ticks.at(-1) as number, ticks };
}

/** 1, 2 or 5 times a power of ten, not below what is wanted. */
export function roundStep(wanted: number): number {
  const power = 10 ** Math.floor(Math.log10(wanted));
  const part = wanted / power;
  return (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10) * power;
}

/** From 0 (the least) to 1 (the most). */
export function partOf(scale: Scale, value: number): number {
  return (value - scale.least) / (scale.most - scale.least);
}

/** Stretches of neighbours that are there; a null is a gap between two. */
export function stretches(values: Values): readonly (readonly { readonly place: number; readonly value: number }[])[] {
  const found: { place: number; value: number }[][] = [[]];
  values.forEach((value, place) => {
    if (value === null) found.push([]);
    else found.at(-1)?.push({ place, value });
  });
  return found.filter((stretch) => stretch.length);
}

export interface Slice {
  readonly label: string;
  readonly value: number;
  readonly part: number;
  /** Of a whole turn, from the top, clockwise. */
  readonly start: number;
  readonly end: number;
}

/** The slices of a pie: what is null, zero or less has none. */
export function slicesOf(labels: readonly string[], values: Values): readonly Slice[] {
  const there = values.map((value) => Math.max(0, value ?? 0));
  const whole = there.reduce((sum, value) => sum + value, 0);
  if (whole <= 0) return [];
  let start = 0;
  return there.flatMap((value, place) => {
    if (!value) return [];
    const slice = { label: labels[place] ?? "", value, part: value / whole, start, end: start + value / whole };
    start = slice.end;
    return [slice];
  });
}

/** Every how manieth label is shown, so that they do not stand on one another. */
export function labelStep(count: number, room: number): number {
  return Math.max(1, Math.ceil(count / Math.max(1, room)));
}

function tidy(value: number): number {
  return Number(value.toPrecision(12));
}
