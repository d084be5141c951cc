/** All calls of a thread: a plot, and the same as a table whose rows lead to the calls. */

import { MOST_CALLS, type CallPlace, type ThreadCall } from "../../../api/calls.ts";
import { formatNumber, formatPrice } from "../../../language/language.ts";
import { linkTo } from "../../../state/route.ts";
import { isAt } from "./call_order.ts";
import { words } from "../request/figure_words.ts";
import { Plot } from "./plot.tsx";
import "./plot.css";
import { figuresOf, type Figures } from "./plot_scale.ts";
import { words as common } from "../words.ts";

interface Props {
  readonly thread: string;
  readonly calls: readonly ThreadCall[];
  readonly shown: CallPlace;
}

export function ThreadCalls({ thread, calls, shown }: Props) {
  const text = words.value;
  const figures = calls.map(figuresOf);
  return (
    <section class="thread-calls">
      <h2>{text.thread}</h2>
      <p class="soft small">
        {text.threadAbout} {calls.length === MOST_CALLS && text.newest(formatNumber(MOST_CALLS))}
      </p>
      <Legend />
      <Plot thread={thread} figures={figures} shown={shown} />
      {figures.every((one) => one.price === null) && <p class="soft small">{text.noPrices}</p>}
      <details>
        <summary>{text.table}</summary>
        <CallTable thread={thread} figures={figures} shown={shown} />
      </details>
    </section>
  );
}

function Legend() {
  const text = words.value;
  return (
    <ul class="legend">
      <li>
        <span class="swatch sent" aria-hidden="true" /> {text.sent}
      </li>
      <li>
        <span class="swatch cached" aria-hidden="true" /> {text.cachedTokens}
      </li>
      <li>
        <span class="swatch saved" aria-hidden="true" /> {text.savedTokens}
      </li>
    </ul>
  );
}

function CallTable({ thread, figures, shown }: { thread: string; figures: readonly Figures[]; shown: CallPlace }) {
  const text = words.value;
  return (
    <div class="call-table" tabIndex={0} role="region" aria-label={text.thread}>
      <table>
        <thead>
          <tr>
            <th scope="col">{text.call}</th>
            <th scope="col">{text.model}</th>
            <th scope="col">{text.sent}</th>
            <th scope="col">{text.cachedTokens}</th>
            <th scope="col">{text.savedTokens}</th>
            <th scope="col">{text.price}</th>
          </tr>
        </thead>
        <tbody>
          {figures.map((one, at) => (
            <CallRow key={`${one.call.run} ${one.call.n}`} {...{ thread, one, at }} isShown={isAt(one.call, shown)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  readonly thread: string;
  readonly one: Figures;
  readonly at: number;
  readonly isShown: boolean;
}

function CallRow({ thread, one, at, isShown }: RowProps) {
  const text = words.value;
  const { call } = one;
  return (
    <tr class={isShown ? "shown" : ""}>
      <th scope="row">
        <a
          href={linkTo({ view: "call", thread, run: call.run, n: call.n })}
          {...(isShown ? { "aria-current": "true" as const } : {})}
        >
          {formatNumber(at + 1)} · {common.value.purposes[call.purpose] ?? call.purpose}
        </a>
      </th>
      <td>{call.model}</td>
      <td>{formatNumber(one.sent)}</td>
      <td>{formatNumber(one.cached)}</td>
      <td>{call.saved === null ? text.unknown : formatNumber(one.saved)}</td>
      <td>{one.price === null ? text.unknown : formatPrice(one.price)}</td>
    </tr>
  );
}
