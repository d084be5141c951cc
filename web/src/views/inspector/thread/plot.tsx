/** The calls of a thread as bars: what was sent, what of it the cache had, what was saved; below, what each cost. */

import type { CallPlace } from "../../../api/calls.ts";
import { formatNumber, formatPrice } from "../../../language/language.ts";
import { linkTo } from "../../../state/route.ts";
import { isAt } from "./call_order.ts";
import { words } from "../request/figure_words.ts";
import { labelled, short, slotAt, ticks, yAt, type Figures, type Scale } from "./plot_scale.ts";
import { useWidth } from "./use_width.ts";

interface Props {
  readonly thread: string;
  readonly figures: readonly Figures[];
  readonly shown: CallPlace;
}

const LEFT = 52;
const RIGHT = 8;
const TOKENS = { top: 12, height: 170 };
const PRICE = { top: 218, height: 60 };
const LABELS = 24;

/** It is for the eye only: the table below it says the same, and is what the keyboard walks through. */
export function Plot({ thread, figures, shown }: Props) {
  const [element, width] = useWidth(480);
  const hasPrices = figures.some((one) => one.price !== null);
  const marks = ticks(Math.max(...figures.map((one) => one.sent + one.saved), 0));
  const tokens: Scale = { ...TOKENS, most: marks.at(-1) ?? 0 };
  const bottom = hasPrices ? PRICE.top + PRICE.height : TOKENS.top + TOKENS.height;
  const inner = width.value - LEFT - RIGHT;
  const shownAt = figures.findIndex((one) => isAt(one.call, shown));
  return (
    <div class="plot" ref={element} aria-hidden="true">
      <svg width={width.value} height={bottom + 2 * LABELS} viewBox={`0 0 ${width.value} ${bottom + 2 * LABELS}`}>
        <Axis marks={marks} scale={tokens} width={width.value} format={short} />
        {figures.map((one, at) => (
          <Bar
            key={`${one.call.run} ${one.call.n}`}
            slot={slotAt(at, figures.length, LEFT, inner)}
            {...{ thread, one, shown, tokens, bottom }}
          />
        ))}
        {hasPrices && <Prices figures={figures} width={width.value} inner={inner} />}
        <Numbers count={figures.length} {...{ shownAt, bottom, inner }} />
      </svg>
    </div>
  );
}

interface BarProps {
  readonly thread: string;
  readonly one: Figures;
  readonly shown: CallPlace;
  readonly tokens: Scale;
  readonly bottom: number;
  readonly slot: { readonly left: number; readonly width: number };
}

function Bar({ thread, one, shown, tokens, bottom, slot }: BarProps) {
  const { call, sent, cached, saved } = one;
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
      class={isAt(call, shown) ? "bar shown" : "bar"}
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
  readonly shownAt: number;
  readonly bottom: number;
  readonly inner: number;
}

/** Below the bars: which call each is. */
function Numbers({ count, shownAt, bottom, inner }: NumbersProps) {
  const x = (at: number) => slotAt(at, count, LEFT, inner).middle;
  return (
    <g text-anchor="middle">
      {labelled(count, inner).map((at) => (
        <text key={at} class={at === shownAt ? "tick shown" : "tick"} x={x(at)} y={bottom + 16}>
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
  const most = Math.max(...figures.map((one) => one.price ?? 0), 0);
  const scale: Scale = { ...PRICE, most };
  return (
    <g class="prices">
      <text class="axis" x={LEFT} y={PRICE.top - 8}>
        {words.value.priceAxis}
      </text>
      <Axis marks={most > 0 ? [0, most] : [0]} scale={scale} width={width} format={shortPrice} />
      {figures.map((one, at) => {
        if (one.price === null) return null;
        const slot = slotAt(at, figures.length, LEFT, inner);
        const y = yAt(one.price, scale);
        const height = PRICE.top + PRICE.height - y;
        return <rect key={at} class="price" x={slot.left} width={slot.width} y={y} height={height} />;
      })}
    </g>
  );
}

/** As much of a price as there is room for beside the axis. */
function shortPrice(nano: number): string {
  return nano === 0 ? "$0" : formatPrice(nano).replace(/0+$/, "").slice(0, 8);
}
