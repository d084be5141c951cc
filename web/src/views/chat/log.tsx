/** What was said, oldest first. Its end stays in sight while it grows, and long ones are drawn from their end. */

import { useEffect } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import { turnsOf, type Turn } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { Icon } from "../../parts/icon.tsx";
import { Waiting } from "../waiting/waiting.tsx";
import { Announcer } from "./announcer.tsx";
import { useFramed } from "./framed.ts";
import "./log.css";
import { RunState } from "./run_state.tsx";
import { useEndOfScroll } from "./scrolling.ts";
import { useShownTurns } from "./shown_turns.ts";
import { TurnView } from "./turn.tsx";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

export function Log({ thread, agent }: Props) {
  const turns = turnsOf(useFramed(thread.messages));
  const end = useEndOfScroll();
  const { start, showMore } = useShownTurns(turns.length, end);
  const last = turns.at(-1);
  const answered = thread.isRunning.value ? answeredOf(turns) : null;
  const text = words.value;

  // Whoever says something wants to see it.
  const isSending = last?.user?.status === "sending";
  useEffect(() => {
    if (isSending) end.toEnd();
  }, [last?.key, isSending]);

  return (
    <div class="log">
      <div class="log-scroll" ref={end.scroller}>
        <div class="log-content" ref={end.content}>
          {start > 0 && (
            <button type="button" class="plain earlier" onClick={showMore}>
              {text.earlier}
            </button>
          )}
          <div role="log" aria-live="off" aria-label={text.log}>
            {turns.slice(start).map((turn) => (
              <TurnView
                key={turn.key}
                turn={turn}
                thread={thread}
                agent={agent}
                isLast={turn === last}
                isAnswered={turn === answered}
              />
            ))}
          </div>
          <Waiting thread={thread} agent={agent} />
          <RunState thread={thread} agent={agent} />
        </div>
      </div>
      {!end.isAtEnd.value && (
        <button type="button" class="to-end" onClick={end.toEnd}>
          <Icon name="chevron" />
          {text.toEnd}
        </button>
      )}
      <Announcer thread={thread} />
    </div>
  );
}

/** The turn a run is at work on: those behind it wait. */
function answeredOf(turns: readonly Turn[]): Turn | null {
  return turns.findLast((turn) => turn.user?.status !== "queued" && turn.user?.status !== "unsent") ?? null;
}
