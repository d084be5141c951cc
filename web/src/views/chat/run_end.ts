/** Acts when a run that was followed has ended. */

import { useEffect, useRef } from "preact/hooks";

import type { OpenThread } from "../../conversation/open_thread.ts";

export function useRunEnd(thread: OpenThread, act: () => void): void {
  const isRunning = thread.isRunning.value;
  const wasRunning = useRef(isRunning);
  useEffect(() => {
    if (wasRunning.current && !isRunning) act();
    wasRunning.current = isRunning;
  }, [isRunning]);
}
