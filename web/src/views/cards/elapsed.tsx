/** How long something took, or is taking: it counts while it runs. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { formatSeconds } from "../../language/language.ts";

const TICK_MS = 1_000;

export function Elapsed({ started, ended }: { started: number; ended: number | null }) {
  const now = useSignal(Date.now());
  useEffect(() => {
    if (ended !== null) return;
    const timer = setInterval(() => {
      now.value = Date.now();
    }, TICK_MS);
    return () => clearInterval(timer);
  }, [ended]);
  const passed = Math.max(0, (ended ?? now.value) - started);
  const text = ended === null ? `${Math.floor(passed / 1000)} s` : formatSeconds(passed);
  return <span class="call-time soft">{text}</span>;
}
