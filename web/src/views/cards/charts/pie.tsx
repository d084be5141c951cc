/** A pie: slices from the top, clockwise. */

import { COLOURS } from "./colours.ts";
import { slicesOf, type Values } from "./scale.ts";

const SIZE = 200;
const RADIUS = 92;

interface Props {
  readonly labels: readonly string[];
  readonly values: Values;
  readonly name: string;
}

export function Pie({ labels, values, name }: Props) {
  return (
    <svg class="chart-drawing chart-pie" viewBox={`0 0 ${SIZE} ${SIZE}`} role="img" aria-label={name}>
      {slicesOf(labels, values).map((slice) => {
        const colour = `chart-fill chart-slice colour-${labels.indexOf(slice.label) % COLOURS}`;
        const title = <title>{`${slice.label}: ${slice.value} (${Math.round(slice.part * 100)} %)`}</title>;
        return slice.part === 1 ? (
          <circle key={slice.start} class={colour} cx={SIZE / 2} cy={SIZE / 2} r={RADIUS}>
            {title}
          </circle>
        ) : (
          <path key={slice.start} class={colour} d={sliceOf(slice.start, slice.end)}>
            {title}
          </path>
        );
      })}
    </svg>
  );
}

function sliceOf(start: number, end: number): string {
  const isLarge = end - start > 0.5 ? 1 : 0;
  return `M${SIZE / 2},${SIZE / 2} L${edgeAt(start)} A${RADIUS},${RADIUS} 0 ${isLarge} 1 ${edgeAt(end)} Z`;
}

function edgeAt(turn: number): string {
  const angle = (turn - 0.25) * 2 * Math.PI;
  return `${(SIZE / 2 + RADIUS * Math.cos(angle)).toFixed(2)},${(SIZE / 2 + RADIUS * Math.sin(angle)).toFixed(2)}`;
}
