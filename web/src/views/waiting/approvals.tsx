/** Calls that a person has to agree to, each with its own choices; several can be agreed to at once. */

import { Approval } from "./approval.tsx";
import { goOnWriting } from "./focus.ts";
import type { WaitingState } from "./waiting_state.ts";
import { words } from "./words.ts";

export function Approvals({ state }: { state: WaitingState }) {
  const interrupts = state.interrupts.value;

  async function approveAll(): Promise<void> {
    const decisions = interrupts.map((interrupt) => state.approvalOf(interrupt).approval());
    const ready = decisions.filter((decision) => decision !== null);
    if (ready.length === decisions.length && (await state.decide(interrupts, ready))) goOnWriting();
  }

  return (
    <>
      {interrupts.map((interrupt, place) => (
        <Approval key={interrupt.id} interrupt={interrupt} state={state} isFirst={place === 0} />
      ))}
      {interrupts.length > 1 && (
        <button type="button" class="approve-all" disabled={state.isHeld.value} onClick={() => void approveAll()}>
          {words.value.approveAll(interrupts.length)}
        </button>
      )}
    </>
  );
}
