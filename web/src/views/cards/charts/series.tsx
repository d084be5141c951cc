/** Series of a chart as bars, as lines, or as lines with what is below them filled. */

import type { ChartNode } from "../../../api/ui_schema.ts";
import { bandOf, middleOf, yOf } from "./axes.tsx";
import { COLOURS } from "./colours.ts";
import { stretches, type Scale } from "./scale.ts";

interface Props {
  readonly node: ChartNode;
  readonly scale: Scale;
}

const BAND_USED = 0.76;

export function Bars({ node, scale }: Props) {
  const band = bandOf(node.labels.length) * BAND_USED;
  const width = band / Math.max(1, node.series.length);
  const zero = yOf(scale, 0);
  return (
    <>
      {node.series.map((series, which) =>
        series.values.map((value, place) => {
          if (value === null) return null;
          const y = yOf(scale, value);
          const x = middleOf(node.labels.length, place) - band / 2 + which * width;
          return (
            <rect
              key={`${which} ${place}`}
              class={`chart-fill colour-${which % COLOURS}`}
              x={x + 1}
              y={Math.min(y, zero)}
              width={Math.max(1, width - 2)}
              height={Math.max(1, Math.abs(zero - y))}
              rx={2}
            >
              <title>{`${series.name} · ${node.labels[place] ?? ""}: ${value}`}</title>
            </rect>
          );
        }),
      )}
    </>
  );
}

export function Lines({ node, scale, isFilled }: Props & { isFilled: boolean }) {
  const count = node.labels.length;
  const zero = yOf(scale, 0);
  return (
    <>
      {node.series.map((series, which) =>
        stretches(series.values).map((stretch, part) => {
          const points = stretch.map(({ place, value }) => ({ x: middleOf(count, place), y: yOf(scale, value) }));
          const path = points.map(({ x, y }) => `${x},${y}`).join(" ");
          const [first, last] = [points[0], points.at(-1)];
          return (
            <g key={`${which} ${part}`} class={`colour-${which % COLOURS}`}>
              {isFilled && first && last && (
                <polygon class="chart-below" points={`${first.x},${zero} ${path} ${last.x},${zero}`} />
              )}
              <polyline class="chart-stroke" points={path} />
              {stretch.map(({ place, value }) => (
                <circle key={place} class="chart-point" cx={middleOf(count, place)} cy={yOf(scale, value)} r={3}>
                  <title>{`${series.name} · ${node.labels[place] ?? ""}: ${value}`}</title>
                </circle>
              ))}
            </g>
          );
        }),
      )}
    </>
  );
}
