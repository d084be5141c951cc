/** How wide an element is, in pixels, as it changes: what is drawn to scale keeps its letters readable. */

import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { RefObject } from "preact";

export function useWidth(first: number): [RefObject<HTMLDivElement | null>, ReadonlySignal<number>] {
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
