/** The first of many, and the others on demand: thousands at once would hold up the page. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { formatNumber } from "../../../language/language.ts";
import { AT_ONCE } from "./part_rows.ts";
import { words } from "../words.ts";

interface Props<Item> {
  readonly items: readonly Item[];
  readonly children: (item: Item) => ComponentChildren;
}

/** Items of a list: it is drawn inside one. */
export function Paged<Item>({ items, children }: Props<Item>) {
  const shown = useSignal(AT_ONCE);
  const left = items.length - shown.value;
  return (
    <>
      {items.slice(0, shown.value).map(children)}
      {left > 0 && (
        <li class="more">
          <button
            type="button"
            onClick={() => {
              shown.value += AT_ONCE;
            }}
          >
            {words.value.more(formatNumber(Math.min(AT_ONCE, left)), formatNumber(left))}
          </button>
        </li>
      )}
    </>
  );
}
