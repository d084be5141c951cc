/** Scales, segments and slices of charts. Pure. */

export interface Scale {
  readonly min: number;
  readonly max: number;
  /** Round values from min to max, inclusive. */
  readonly ticks: readonly number[];
}

export type Values = readonly (number | null)[];

/** Return a scale of round steps with all values. It contains zero, so that lengths are comparable. */
export function scaleOf(series: readonly Values[], count = 4): Scale {
  const numbers = series.flat().filter((value): value is number => value !== null && Number.isFinite(value));
  const min = Math.min(0, ...numbers);
  const max = Math.max(0, ...numbers) || (min < 0 ? 0 : 1);
  const step = roundStep((max - min) / count);
  const first = Math.floor(min / step + 1e-9);
  const last = Math.max(Math.ceil(max / step - 1e-9), first + 1);
  const ticks = Array.from({ length: last - first + 1 }, (_, place) => roundOff((first + place) * step));
  return { min: ticks[0] as number, max: ticks.at(-1) as number, ticks };
}

/** Round up to 1, 2 or 5 times a power of ten. */
export function roundStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  const part = step / power;
  return (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10) * power;
}

/** Return the position of a value from 0 (min) to 1 (max). */
export function fractionOf(scale: Scale, value: number): number {
  return (value - scale.min) / (scale.max - scale.min);
}

/** Split values into segments without gaps. Each null is a gap. */
export function segmentsOf(values: Values): readonly (readonly { readonly place: number; readonly value: number }[])[] {
  const segments: { place: number; value: number }[][] = [[]];
  values.forEach((value, place) => {
    if (value === null) segments.push([]);
    else segments.at(-1)?.push({ place, value });
  });
  return segments.filter((segment) => segment.length);
}

interface Slice {
  readonly label: string;
  readonly value: number;
  readonly part: number;
  /** Fractions of a full turn, clockwise from the top. */
  readonly start: number;
  readonly end: number;
}

/** Return the slices of a pie. Null, zero and negative values have none. */
export function slicesOf(labels: readonly string[], values: Values): readonly Slice[] {
  const amounts = values.map((value) => Math.max(0, value ?? 0));
  const whole = amounts.reduce((sum, value) => sum + value, 0);
  if (whole <= 0) return [];
  let start = 0;
  return amounts.flatMap((value, place) => {
    if (!value) return [];
    const slice = { label: labels[place] ?? "", value, part: value / whole, start, end: start + value / whole };
    start = slice.end;
    return [slice];
  });
}

/** Return the interval between visible labels, so that they do not overlap. */
export function labelInterval(count: number, room: number): number {
  return Math.max(1, Math.ceil(count / Math.max(1, room)));
}

function roundOff(value: number): number {
  return Number(value.toPrecision(12));
}
