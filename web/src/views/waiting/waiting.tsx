/** What waits for a person in a thread: calls to agree to, forms to fill in. */

import { useMemo } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { Approvals } from "./approvals.tsx";
import { PendingForms } from "./pending_forms.tsx";
import "./waiting.css";
import { WaitingState } from "./waiting_state.ts";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

export function Waiting({ thread, agent }: Props) {
  const state = useMemo(() => new WaitingState(thread), [thread]);
  const [approvals, calls] = [state.interrupts.value.length, state.calls.value];
  const forms = calls.filter((call) => agent?.forms.some((form) => form.name === call.name));
  const text = words.value;
  const told = [approvals && text.approvals(approvals), forms.length && text.forms(forms.length)].filter(Boolean);
  return (
    <>
      <p class="hidden-but-read" role="status">
        {!thread.isRunning.value && told.join(" ")}
      </p>
      {told.length > 0 && (
        <section class="waiting-region" aria-label={text.region}>
          <Approvals state={state} />
          <PendingForms state={state} agent={agent} calls={forms} />
          {calls.length > forms.length && <p class="soft small">{text.elsewhere}</p>}
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
