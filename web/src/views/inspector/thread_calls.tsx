/** Calls of a thread as a chart and a table. */

import { type ReadonlySignal, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { type CallRef, MAX_CALLS, type ThreadCall } from "../../api/calls.ts";
import { formatNumber, formatPrice } from "../../language/language.ts";
import { linkTo } from "../../state/route.ts";
import { scaleOf } from "../cards/charts/scale.ts";
import { words } from "./figure_words.ts";
import "./plot.css";
import { isSameCall } from "./state.ts";
import { words as common } from "./words.ts";

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

interface Props {
  readonly thread: string;
  readonly calls: readonly ThreadCall[];
  readonly selected: CallRef;
}

export function ThreadCalls({ thread, calls, selected }: Props) {
  const text = words.value;
  const figures = calls.map(figuresOf);
  return (
    <section class="thread-calls">
      <h2>{text.thread}</h2>
      <p class="soft small">
        {text.threadAbout} {calls.length === MAX_CALLS && text.newest(formatNumber(MAX_CALLS))}
      </p>
      <Legend />
      <Plot thread={thread} figures={figures} selected={selected} />
      {figures.every((figure) => figure.price === null) && <p class="soft small">{text.noPrices}</p>}
      <details>
        <summary>{text.table}</summary>
        <CallTable thread={thread} figures={figures} selected={selected} />
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

function CallTable({ thread, figures, selected }: { thread: string; figures: readonly Figures[]; selected: CallRef }) {
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
          {figures.map((figure, at) => (
            <CallRow key={`${figure.call.run} ${figure.call.n}`} {...{ thread, figure, at }} isCurrent={isSameCall(figure.call, selected)} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  readonly thread: string;
  readonly figure: Figures;
  readonly at: number;
  readonly isCurrent: boolean;
}

function CallRow({ thread, figure, at, isCurrent }: RowProps) {
  const text = words.value;
  const { call } = figure;
  return (
    <tr class={isCurrent ? "current" : ""}>
      <th scope="row">
        <a
          href={linkTo({ view: "call", thread, run: call.run, n: call.n })}
          {...(isCurrent ? { "aria-current": "true" as const } : {})}
        >
          {formatNumber(at + 1)} · {common.value.purposes[call.purpose] ?? call.purpose}
        </a>
      </th>
      <td>{call.model}</td>
      <td>{formatNumber(figure.sent)}</td>
      <td>{formatNumber(figure.cached)}</td>
      <td>{call.saved === null ? text.unknown : formatNumber(figure.saved)}</td>
      <td>{figure.price === null ? text.unknown : formatPrice(figure.price)}</td>
    </tr>
  );
}

interface PlotProps {
  readonly thread: string;
  readonly figures: readonly Figures[];
  readonly selected: CallRef;
}

const LEFT = 52;
const RIGHT = 8;
const TOKENS = { top: 12, height: 170 };
const PRICE = { top: 218, height: 60 };
const LABELS = 24;

/** Hidden from screen readers, which use the table. */
function Plot({ thread, figures, selected }: PlotProps) {
  const [element, width] = useWidth(480);
  const hasPrices = figures.some((figure) => figure.price !== null);
  const top = Math.max(...figures.map((figure) => figure.sent + figure.saved), 0);
  const marks = top > 0 ? scaleOf([[top]]).ticks : [0];
  const tokens: Scale = { ...TOKENS, max: marks.at(-1) ?? 0 };
  const bottom = hasPrices ? PRICE.top + PRICE.height : TOKENS.top + TOKENS.height;
  const inner = width.value - LEFT - RIGHT;
  const selectedAt = figures.findIndex((figure) => isSameCall(figure.call, selected));
  return (
    <div class="plot" ref={element} aria-hidden="true">
      <svg width={width.value} height={bottom + 2 * LABELS} viewBox={`0 0 ${width.value} ${bottom + 2 * LABELS}`}>
        <Axis marks={marks} scale={tokens} width={width.value} format={formatShort} />
        {figures.map((figure, at) => (
          <Bar
            key={`${figure.call.run} ${figure.call.n}`}
            slot={slotAt(at, figures.length, LEFT, inner)}
            {...{ thread, figure, selected, tokens, bottom }}
          />
        ))}
        {hasPrices && <Prices figures={figures} width={width.value} inner={inner} />}
        <Numbers count={figures.length} {...{ selectedAt, bottom, inner }} />
      </svg>
    </div>
  );
}

interface BarProps {
  readonly thread: string;
  readonly figure: Figures;
  readonly selected: CallRef;
  readonly tokens: Scale;
  readonly bottom: number;
  readonly slot: { readonly left: number; readonly width: number };
}

function Bar({ thread, figure, selected, tokens, bottom, slot }: BarProps) {
  const { call, sent, cached, saved } = figure;
  const text = words.value;
  const title = text.barTitle(`${text.call} ${call.n}`, formatNumber(sent), formatNumber(cached), formatNumber(saved));
  const column = (from: number, to: number) => ({
    x: slot.left,
    width: slot.width,
    y: yAt(to, tokens),
    height: Math.max(0, yAt(from, tokens) - yAt(to, tokens)),
  });
  return (
    <a
      class={isSameCall(call, selected) ? "bar current" : "bar"}
      href={linkTo({ view: "call", thread, run: call.run, n: call.n })}
      tabindex={-1}
    >
      <title>{title}</title>
      <rect class="reach" x={slot.left - 2} width={slot.width + 4} y={tokens.top} height={bottom - tokens.top} />
      <rect class="sent" {...column(0, sent)} />
      {cached > 0 && <rect class="cached" {...column(0, cached)} />}
      {saved > 0 && <rect class="saved" {...column(sent, sent + saved)} />}
    </a>
  );
}

interface NumbersProps {
  readonly count: number;
  readonly selectedAt: number;
  readonly bottom: number;
  readonly inner: number;
}

/** Call numbers below the bars. */
function Numbers({ count, selectedAt, bottom, inner }: NumbersProps) {
  const x = (at: number) => slotAt(at, count, LEFT, inner).middle;
  return (
    <g text-anchor="middle">
      {labelIndexes(count, inner).map((at) => (
        <text key={at} class={at === selectedAt ? "tick current" : "tick"} x={x(at)} y={bottom + 16}>
          {at + 1}
        </text>
      ))}
      <text class="axis" x={LEFT + inner / 2} y={bottom + 38}>
        {words.value.callAxis}
      </text>
    </g>
  );
}

interface AxisProps {
  readonly marks: readonly number[];
  readonly scale: Scale;
  readonly width: number;
  readonly format: (value: number) => string;
}

function Axis({ marks, scale, width, format }: AxisProps) {
  return (
    <g>
      {marks.map((mark) => (
        <g key={mark}>
          <line class="grid" x1={LEFT} x2={width - RIGHT} y1={yAt(mark, scale)} y2={yAt(mark, scale)} />
          <text class="tick" x={LEFT - 6} y={yAt(mark, scale) + 4} text-anchor="end">
            {format(mark)}
          </text>
        </g>
      ))}
    </g>
  );
}

function Prices({ figures, width, inner }: { figures: readonly Figures[]; width: number; inner: number }) {
  const max = Math.max(...figures.map((figure) => figure.price ?? 0), 0);
  const scale: Scale = { ...PRICE, max };
  return (
    <g class="prices">
      <text class="axis" x={LEFT} y={PRICE.top - 8}>
        {words.value.priceAxis}
      </text>
      <Axis marks={max > 0 ? [0, max] : [0]} scale={scale} width={width} format={shortPrice} />
      {figures.map((figure, at) => {
        if (figure.price === null) return null;
        const slot = slotAt(at, figures.length, LEFT, inner);
        const y = yAt(figure.price, scale);
        const height = PRICE.top + PRICE.height - y;
        return <rect key={at} class="price" x={slot.left} width={slot.width} y={y} height={height} />;
      })}
    </g>
  );
}

/** Format a price for the narrow axis. */
function shortPrice(nano: number): string {
  return nano === 0 ? "$0" : formatPrice(nano).replace(/0+$/, "").slice(0, 8);
}

function useWidth(first: number): [RefObject<HTMLDivElement | null>, ReadonlySignal<number>] {
  const element = useRef<HTMLDivElement>(null);
  const width = useSignal(first);
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) width.value = Math.max(240, Math.floor(entry.contentRect.width));
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}
