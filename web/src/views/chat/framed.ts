/** A signal's value as it is drawn: at most once a frame, however often it changes. */

import { effect, useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

const HIDDEN_MS = 200;

export function useFramed<Value>(source: ReadonlySignal<Value>): Value {
  const shown = useSignal(source.peek());
  useEffect(() => {
    let cancel: (() => void) | null = null;
    const end = effect(() => {
      if (source.value === shown.peek() || cancel) return;
      cancel = inNextFrame(() => {
        cancel = null;
        shown.value = source.peek();
      });
    });
    return () => {
      end();
      cancel?.();
    };
  }, [source]);
  return shown.value;
}

/** Pages that nobody sees have no frames. */
function inNextFrame(act: () => void): () => void {
  if (document.visibilityState === "hidden") {
    const timer = setTimeout(act, HIDDEN_MS);
    return () => clearTimeout(timer);
  }
  const frame = requestAnimationFrame(act);
  return () => cancelAnimationFrame(frame);
}
