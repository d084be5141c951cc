/**
 * The end of the conversation is kept in sight while it grows, for whoever was there. Who reads further up stays.
 */

import { useSignal, type Signal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Pixels from the end that still count as being there. */
const NEAR = 48;

export interface EndOfScroll {
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly content: RefObject<HTMLDivElement | null>;
  readonly isAtEnd: Signal<boolean>;
  readonly toEnd: () => void;
}

export function useEndOfScroll(): EndOfScroll {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isAtEnd = useSignal(true);
  const toEnd = () => {
    isAtEnd.value = true;
    scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  };

  useEffect(() => {
    const [outer, inner] = [scroller.current, content.current];
    if (!outer || !inner) return;
    let top = outer.scrollTop;
    const look = () => {
      const distance = outer.scrollHeight - outer.clientHeight - outer.scrollTop;
      // Growth alone moves nobody away from the end: only scrolling up does.
      if (distance <= NEAR) isAtEnd.value = true;
      else if (outer.scrollTop < top) isAtEnd.value = false;
      top = outer.scrollTop;
    };
    const keep = new ResizeObserver(() => {
      if (isAtEnd.peek()) outer.scrollTop = outer.scrollHeight;
      else look();
    });
    keep.observe(inner);
    keep.observe(outer);
    outer.addEventListener("scroll", look, { passive: true });
    return () => {
      keep.disconnect();
      outer.removeEventListener("scroll", look);
    };
  }, []);

  return { scroller, content, isAtEnd, toEnd };
}
