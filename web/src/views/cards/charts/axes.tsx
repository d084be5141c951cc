/** The ground of a chart: round values at the side with a line each, labels below. */

import type { ComponentChildren } from "preact";

import { locale } from "../../../language/language.ts";
import { labelStep, partOf, type Scale } from "./scale.ts";

export const WIDTH = 400;
export const HEIGHT = 200;
const LEFT = 42;
const BELOW = 26;
const TOP = 8;
const LABEL_ROOM = 6;
const LONGEST = 9;

interface Props {
  readonly scale: Scale;
  readonly labels: readonly string[];
  readonly name: string;
  readonly children: ComponentChildren;
}

export function Axes({ scale, labels, name, children }: Props) {
  const every = labelStep(labels.length, LABEL_ROOM);
  return (
    <svg class="chart-drawing" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={name}>
      {scale.ticks.map((tick) => (
        <g key={tick}>
          <path class={tick === 0 ? "chart-zero" : "chart-line"} d={`M${LEFT},${yOf(scale, tick)} H${WIDTH}`} />
          <text x={LEFT - 6} y={yOf(scale, tick) + 4} text-anchor="end">
            {compact(tick)}
          </text>
        </g>
      ))}
      {children}
      {labels.map((label, place) =>
        place % every === 0 ? (
          <text key={place} x={middleOf(labels.length, place)} y={HEIGHT - 8} text-anchor="middle">
            {label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label}
          </text>
        ) : null,
      )}
    </svg>
  );
}

export function yOf(scale: Scale, value: number): number {
  return HEIGHT - BELOW - partOf(scale, value) * (HEIGHT - BELOW - TOP);
}

export function bandOf(count: number): number {
  return (WIDTH - LEFT) / Math.max(1, count);
}

export function middleOf(count: number, place: number): number {
  return LEFT + bandOf(count) * (place + 0.5);
}

function compact(value: number): string {
  return new Intl.NumberFormat(locale.value, { notation: "compact", maximumFractionDigits: 2 }).format(value);
}
