/** Scroll position that sticks to the end while the log grows, unless the user has scrolled up. */

import { type Signal, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** Pixels from the end that count as the end. */
const NEAR = 48;

interface StickyScroll {
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly content: RefObject<HTMLDivElement | null>;
  readonly isAtEnd: Signal<boolean>;
  readonly scrollToEnd: () => void;
}

export function useStickyScroll(): StickyScroll {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isAtEnd = useSignal(true);
  const scrollToEnd = () => {
    isAtEnd.value = true;
    scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  };

  useEffect(() => {
    const [outer, inner] = [scroller.current, content.current];
    if (!outer || !inner) return;
    let top = outer.scrollTop;
    const update = () => {
      const distance = outer.scrollHeight - outer.clientHeight - outer.scrollTop;
      // Growth alone does not leave the end. Only scrolling up does.
      if (distance <= NEAR) isAtEnd.value = true;
      else if (outer.scrollTop < top) isAtEnd.value = false;
      top = outer.scrollTop;
    };
    const observer = new ResizeObserver(() => {
      if (isAtEnd.peek()) outer.scrollTop = outer.scrollHeight;
      else update();
    });
    observer.observe(inner);
    observer.observe(outer);
    outer.addEventListener("scroll", update, { passive: true });
    return () => {
      observer.disconnect();
      outer.removeEventListener("scroll", update);
    };
  }, []);

  return { scroller, content, isAtEnd, scrollToEnd };
}

const INITIAL = 8;
const STEP = 3;
const PRELOAD = 60;
const MOMENT_MS = 30;
/** Pixels from the top at which more turns load. */
const NEAR_TOP = 1_200;

interface VisibleTurns {
  /** Index of the first rendered turn. New turns do not change it. */
  readonly start: number;
  readonly showMore: () => void;
}

export function useVisibleTurns(total: number, { scroller, isAtEnd }: StickyScroll): VisibleTurns {
  const hidden = useSignal(Math.max(0, total - INITIAL));
  const fromEnd = useRef<number | null>(null);
  const start = Math.min(hidden.value, Math.max(0, total - INITIAL));

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
    const loadNearTop = () => {
      if (isNearTop()) showMore();
    };
    // A pause between steps keeps typing responsive.
    const timer = setTimeout(() => {
      if (total - start < PRELOAD || isNearTop()) showMore();
    }, MOMENT_MS);
    outer.addEventListener("scroll", loadNearTop, { passive: true });
    return () => {
      clearTimeout(timer);
      outer.removeEventListener("scroll", loadNearTop);
    };
  }, [start]);

  return { start, showMore };
}
