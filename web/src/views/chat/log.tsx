/** Message log, oldest first. It scrolls along while it grows and renders long threads from the end. */

import { effect, type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import { tryAgain } from "../../conversation/actions.ts";
import { answerText, type Turn, turnsOf } from "../../conversation/messages.ts";
import type { OpenThread, Problem } from "../../conversation/open_thread.ts";
import { Icon } from "../../parts/icon.tsx";
import { notifyError } from "../../state/toasts.ts";
import { Interrupts } from "../interrupts/interrupts.tsx";
import { useStickyScroll, useVisibleTurns } from "./log_scroll.ts";
import { lastEditable } from "./message_actions.ts";
import { TurnView } from "./turn.tsx";
import { problemText, words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

export function Log({ thread, agent }: Props) {
  const turns = turnsOf(useFrameThrottle(thread.messages));
  const end = useStickyScroll();
  const { start, showMore } = useVisibleTurns(turns.length, end);
  const last = turns.at(-1);
  // Turns after the active one are queued.
  const isStarted = (turn: Turn) => turn.user?.status !== "queued" && turn.user?.status !== "unsent";
  const active = thread.isRunning.value ? turns.findLast(isStarted) : null;
  const text = words.value;

  // Scroll to a message that the user sends.
  const isSending = last?.user?.status === "sending";
  useEffect(() => {
    if (isSending) end.scrollToEnd();
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
                isActive={turn === active}
              />
            ))}
          </div>
          <Interrupts thread={thread} agent={agent} />
          <RunState thread={thread} agent={agent} />
        </div>
      </div>
      {!end.isAtEnd.value && (
        <button type="button" class="to-end" onClick={end.scrollToEnd}>
          <Icon name="chevron" />
          {text.scrollToEnd}
        </button>
      )}
      <Announcer thread={thread} />
    </div>
  );
}

function RunState({ thread, agent }: Props) {
  const text = words.value;
  const problem = thread.problem.value;
  return (
    <>
      {thread.isCompacting.value && (
        <p class="run-state soft" role="status">
          <span class="dots" aria-hidden="true" /> {text.compacting}
        </p>
      )}
      <p class="run-state connection" role="status">
        {thread.connection.value === "lost" && (
          <>
            <Icon name="warning" /> {text.reconnecting}
          </>
        )}
      </p>
      {problem && !isShownAtMessage(thread, problem) && <ProblemBox thread={thread} agent={agent} problem={problem} />}
    </>
  );
}

function ProblemBox({ thread, agent, problem }: Props & { readonly problem: Problem }) {
  const text = words.value;
  const needsReload = problem.code === "lost" || problem.code === "load";
  const message = lastEditable(thread);
  return (
    <div class="problem run-problem" role="alert">
      <p>{problemText(problem.code, problem.message)}</p>
      {needsReload && (
        <button type="button" onClick={() => {
            thread.problem.value = null;
            void thread.reload();
          }}>
          {text.reload}
        </button>
      )}
      {!needsReload && message && problem.code !== "refused" && (
        <button type="button" onClick={() => void tryAgain(thread, agent, message).catch(notifyError)}>
          <Icon name="retry" /> {text.tryAgain}
        </button>
      )}
    </div>
  );
}

/** Unsent messages show the problem themselves. */
function isShownAtMessage(thread: OpenThread, problem: Problem): boolean {
  if (problem.code !== "refused" && problem.code !== "offline") return false;
  return thread.messages.value.some((message) => message.role === "user" && message.status === "unsent");
}

function Announcer({ thread }: { thread: OpenThread }) {
  const announcement = useSignal("");
  useRunEnd(thread, () => {
    const last = turnsOf(thread.messages.peek()).findLast((turn) => turn.answers.length > 0);
    announcement.value = last ? answerText(last) : "";
  });
  return (
    <div class="visually-hidden" role="status" aria-live="polite" data-announcer>
      {thread.isRunning.value ? words.value.working : announcement.value}
    </div>
  );
}

function useRunEnd(thread: OpenThread, act: () => void): void {
  const isRunning = thread.isRunning.value;
  const wasRunning = useRef(isRunning);
  useEffect(() => {
    if (wasRunning.current && !isRunning) act();
    wasRunning.current = isRunning;
  }, [isRunning]);
}

const HIDDEN_MS = 200;

function useFrameThrottle<Value>(source: ReadonlySignal<Value>): Value {
  const value = useSignal(source.peek());
  useEffect(() => {
    let cancel: (() => void) | null = null;
    const end = effect(() => {
      if (source.value === value.peek() || cancel) return;
      cancel = inNextFrame(() => {
        cancel = null;
        value.value = source.peek();
      });
    });
    return () => {
      end();
      cancel?.();
    };
  }, [source]);
  return value.value;
}

/** Hidden pages get no animation frames. */
function inNextFrame(act: () => void): () => void {
  if (document.visibilityState === "hidden") {
    const timer = setTimeout(act, HIDDEN_MS);
    return () => clearTimeout(timer);
  }
  const frame = requestAnimationFrame(act);
  return () => cancelAnimationFrame(frame);
}
