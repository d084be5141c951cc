/**
 * How many turns are drawn: a few at first, so that a long thread opens at once; more in the moments after, and the
 * rest as one scrolls up. What is seen stays where it is when something is put above it.
 */

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import type { EndOfScroll } from "./scrolling.ts";

const FIRST = 8;
const STEP = 3;
const UNASKED = 60;
const MOMENT_MS = 30;
/** Pixels from the top at which more is put there. */
const NEAR_TOP = 1_200;

export interface ShownTurns {
  /** The first turn that is drawn: what is said later never takes one away. */
  readonly start: number;
  readonly showMore: () => void;
}

export function useShownTurns(total: number, { scroller, isAtEnd }: EndOfScroll): ShownTurns {
  const hidden = useSignal(Math.max(0, total - FIRST));
  const fromEnd = useRef<number | null>(null);
  const start = Math.min(hidden.value, Math.max(0, total - FIRST));

  const showMore = () => {
    const outer = scroller.current;
    fromEnd.current = outer && !isAtEnd.peek() ? outer.scrollHeight - outer.scrollTop : null;
    hidden.value = Math.max(0, start - STEP);
  };

  useLayoutEffect(() => {
    if (fromEnd.current !== null && scroller.current) {
      scroller.current.scrollTop = scroller.current.scrollHeight - fromEnd.current;
    }
    fromEnd.current = null;
  }, [start]);

  useEffect(() => {
    const outer = scroller.current;
    if (!outer || start === 0) return;
    const isNearTop = () => !isAtEnd.peek() && outer.scrollTop < NEAR_TOP;
    const look = () => {
      if (isNearTop()) showMore();
    };
    // Each step has a moment of its own: what is typed meanwhile is not kept waiting.
    const timer = setTimeout(() => {
      if (total - start < UNASKED || isNearTop()) showMore();
    }, MOMENT_MS);
    outer.addEventListener("scroll", look, { passive: true });
    return () => {
      clearTimeout(timer);
      outer.removeEventListener("scroll", look);
    };
  }, [start]);

  return { start, showMore };
}
