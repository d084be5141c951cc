/** A chart with its legend, and the same as a table for who does not see it or wants the numbers. */

import type { ChartNode } from "../../../api/ui_schema.ts";
import { formatNumber } from "../../../language/language.ts";
import { words } from "../words.ts";
import { Axes } from "./axes.tsx";
import "./charts.css";
import { COLOURS } from "./colours.ts";
import { Pie } from "./pie.tsx";
import { scaleOf } from "./scale.ts";
import { Bars, Lines } from "./series.tsx";

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
          <span class={`chart-sign colour-${place % COLOURS}`} />
          {one}
        </li>
      ))}
    </ul>
  );
}

function Values({ node, name }: { node: ChartNode; name: string }) {
  return (
    <details class="chart-values small">
      <summary class="soft">{words.value.values}</summary>
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
                    {shown(series.values[row])}
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

function shown(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : formatNumber(value);
}
