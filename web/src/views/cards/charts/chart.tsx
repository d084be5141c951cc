/** Chart with a legend, and its values as a table. */

import type { ComponentChildren } from "preact";

import type { ChartNode } from "../../../api/ui_schema.ts";
import { formatNumber, locale } from "../../../language/language.ts";
import { words } from "../words.ts";
import "./charts.css";
import { labelInterval, fractionOf, type Scale, scaleOf, slicesOf, segmentsOf, type Values } from "./scale.ts";

export function Chart({ node }: { node: ChartNode }) {
  const name = node.title || words.value.chart;
  return (
    <figure class="chart">
      {node.title && <figcaption>{node.title}</figcaption>}
      <Drawing node={node} name={name} />
      <Legend node={node} />
      <Values node={node} name={name} />
    </figure>
  );
}

function Drawing({ node, name }: { node: ChartNode; name: string }) {
  if (node.kind === "pie") return <Pie labels={node.labels} values={node.series[0]?.values ?? []} name={name} />;
  const scale = scaleOf(node.series.map((series) => series.values));
  return (
    <Axes scale={scale} labels={node.labels} name={name}>
      {node.kind === "bar" ? (
        <Bars node={node} scale={scale} />
      ) : (
        <Lines node={node} scale={scale} isFilled={node.kind === "area"} />
      )}
    </Axes>
  );
}

function Legend({ node }: { node: ChartNode }) {
  const names = node.kind === "pie" ? node.labels : node.series.map((series) => series.name);
  return (
    <ul class="chart-legend small" aria-hidden="true">
      {names.map((one, place) => (
        <li key={place}>
          <span class={`chart-sign color-${place % COLORS}`} />
          {one}
        </li>
      ))}
    </ul>
  );
}

function Values({ node, name }: { node: ChartNode; name: string }) {
  return (
    <details class="chart-values small">
      <summary class="soft">{words.value.data}</summary>
      <div class="ui-scroll" tabIndex={0} role="group" aria-label={name}>
        <table class="ui-table">
          <thead>
            <tr>
              <th scope="col">{words.value.label}</th>
              {node.series.map((series, place) => (
                <th key={place} scope="col">
                  {series.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {node.labels.map((label, row) => (
              <tr key={row}>
                <th scope="row">{label}</th>
                {node.series.map((series, place) => (
                  <td key={place} class="number">
                    {formatCell(series.values[row])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function formatCell(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : formatNumber(value);
}

/** Number of colors in charts.css. Further series start again with the first. */
const COLORS = 6;

const WIDTH = 400;
const HEIGHT = 200;
const LEFT = 42;
const BELOW = 26;
const TOP = 8;
const LABEL_ROOM = 6;
const MAX_LENGTH = 9;

interface AxesProps {
  readonly scale: Scale;
  readonly labels: readonly string[];
  readonly name: string;
  readonly children: ComponentChildren;
}

function Axes({ scale, labels, name, children }: AxesProps) {
  const every = labelInterval(labels.length, LABEL_ROOM);
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
            {label.length > MAX_LENGTH ? `${label.slice(0, MAX_LENGTH - 1)}…` : label}
          </text>
        ) : null,
      )}
    </svg>
  );
}

function yOf(scale: Scale, value: number): number {
  return HEIGHT - BELOW - fractionOf(scale, value) * (HEIGHT - BELOW - TOP);
}

function bandOf(count: number): number {
  return (WIDTH - LEFT) / Math.max(1, count);
}

function middleOf(count: number, place: number): number {
  return LEFT + bandOf(count) * (place + 0.5);
}

function compact(value: number): string {
  return new Intl.NumberFormat(locale.value, { notation: "compact", maximumFractionDigits: 2 }).format(value);
}

interface SeriesProps {
  readonly node: ChartNode;
  readonly scale: Scale;
}

const BAND_USED = 0.76;

export function Bars({ node, scale }: SeriesProps) {
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
              class={`chart-fill color-${which % COLORS}`}
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

function Lines({ node, scale, isFilled }: SeriesProps & { isFilled: boolean }) {
  const count = node.labels.length;
  const zero = yOf(scale, 0);
  return (
    <>
      {node.series.map((series, which) =>
        segmentsOf(series.values).map((segment, part) => {
          const points = segment.map(({ place, value }) => ({ x: middleOf(count, place), y: yOf(scale, value) }));
          const path = points.map(({ x, y }) => `${x},${y}`).join(" ");
          const [first, last] = [points[0], points.at(-1)];
          return (
            <g key={`${which} ${part}`} class={`color-${which % COLORS}`}>
              {isFilled && first && last && (
                <polygon class="chart-below" points={`${first.x},${zero} ${path} ${last.x},${zero}`} />
              )}
              <polyline class="chart-stroke" points={path} />
              {segment.map(({ place, value }) => (
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

const SIZE = 200;
const RADIUS = 92;

interface PieProps {
  readonly labels: readonly string[];
  readonly values: Values;
  readonly name: string;
}

function Pie({ labels, values, name }: PieProps) {
  return (
    <svg class="chart-drawing chart-pie" viewBox={`0 0 ${SIZE} ${SIZE}`} role="img" aria-label={name}>
      {slicesOf(labels, values).map((slice) => {
        const color = `chart-fill chart-slice color-${labels.indexOf(slice.label) % COLORS}`;
        const title = <title>{`${slice.label}: ${slice.value} (${Math.round(slice.part * 100)} %)`}</title>;
        return slice.part === 1 ? (
          <circle key={slice.start} class={color} cx={SIZE / 2} cy={SIZE / 2} r={RADIUS}>
            {title}
          </circle>
        ) : (
          <path key={slice.start} class={color} d={sliceOf(slice.start, slice.end)}>
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
