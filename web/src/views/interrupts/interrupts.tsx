/** Calls of a thread that need an answer from the user: approvals and forms. */

import { useMemo } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { Approvals } from "./approval.tsx";
import { InterruptState } from "./interrupt_state.ts";
import "./interrupts.css";
import { PendingForms } from "./pending_forms.tsx";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

export function Interrupts({ thread, agent }: Props) {
  const state = useMemo(() => new InterruptState(thread), [thread]);
  const [approvals, calls] = [state.interrupts.value.length, state.calls.value];
  const forms = calls.filter((call) => agent?.forms.some((form) => form.name === call.name));
  const text = words.value;
  const toasts = [approvals && text.approvals(approvals), forms.length && text.forms(forms.length)].filter(Boolean);
  return (
    <>
      <p class="visually-hidden" role="status">
        {!thread.isRunning.value && toasts.join(" ")}
      </p>
      {toasts.length > 0 && (
        <section class="interrupts" aria-label={text.region}>
          <Approvals state={state} />
          <PendingForms state={state} agent={agent} calls={forms} />
          {calls.length > forms.length && <p class="soft small">{text.external}</p>}
          {state.problem.value && (
            <p class="problem" role="alert">
              {state.problem.value}
            </p>
          )}
        </section>
      )}
    </>
  );
}
