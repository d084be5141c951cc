/** List that shows a page of items at a time, since thousands would block the browser. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { formatNumber } from "../../../language/language.ts";
import { words } from "../words.ts";

const PAGE_SIZE = 100;

interface Props<Item> {
  readonly items: readonly Item[];
  readonly children: (item: Item) => ComponentChildren;
}

export function Paged<Item>({ items, children }: Props<Item>) {
  const limit = useSignal(PAGE_SIZE);
  const left = items.length - limit.value;
  return (
    <>
      {items.slice(0, limit.value).map(children)}
      {left > 0 && (
        <li class="more">
          <button
            type="button"
            onClick={() => {
              limit.value += PAGE_SIZE;
            }}
          >
            {words.value.more(formatNumber(Math.min(PAGE_SIZE, left)), formatNumber(left))}
          </button>
        </li>
      )}
    </>
  );
}
