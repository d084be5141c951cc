/** A call that a person has to agree to. Keyboard first: `a` approves, `d` denies, `e` changes its arguments. */

import { useEffect, useId, useRef } from "preact/hooks";

import { formatTime } from "../../language/language.ts";
import { Icon } from "../../parts/icon.tsx";
import { CallArguments } from "../cards/call_details.tsx";
import { FormFields } from "../forms/form_fields.tsx";
import { ApprovalChoices } from "./approval_choices.tsx";
import type { Interrupt } from "./approval_state.ts";
import { bringFocus, goOnWriting } from "./focus.ts";
import type { WaitingState } from "./waiting_state.ts";
import { words } from "./words.ts";

/** Whoever the focus was brought to gets a moment to see it before a key counts. */
const SETTLE_MS = 500;
const TYPING_MS = 1_000;

interface Props {
  readonly interrupt: Interrupt;
  readonly state: WaitingState;
  readonly isFirst: boolean;
}

export function Approval({ interrupt, state, isFirst }: Props) {
  const card = useRef<HTMLElement>(null);
  const quietUntil = useRef(-Infinity);
  const heading = useId();
  const approval = state.approvalOf(interrupt);
  const isHeld = state.isHeld.value;
  const isExpired = interrupt.expiresAt !== null && Date.parse(interrupt.expiresAt) <= Date.now();
  const form = approval.form.value;

  useEffect(() => {
    if (isFirst && !isHeld && bringFocus(card.current)) quietUntil.current = performance.now() + SETTLE_MS;
  }, [isFirst, isHeld]);

  async function approve(): Promise<void> {
    const decision = isExpired ? null : approval.approval();
    if (decision && (await state.decide([interrupt], [decision]))) goOnWriting();
  }
  async function deny(): Promise<void> {
    if (await state.decide([interrupt], [approval.denial(isExpired)])) goOnWriting();
  }
  function change(): void {
    if (form === null) approval.changeArguments(words.value.arguments);
    else approval.keepArguments();
  }

  /** Only for who is on the card itself, and not for letters of words that were meant for something else. */
  function onKey(event: KeyboardEvent): void {
    if (event.target !== card.current || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const act = { a: approve, d: deny, e: change }[event.key];
    if (!act && event.key.length === 1) quietUntil.current = event.timeStamp + TYPING_MS;
    if (!act || isHeld) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.timeStamp > quietUntil.current) void act();
  }

  return (
    <article
      ref={card}
      class="waiting-card approval"
      tabIndex={0}
      aria-labelledby={heading}
      onKeyDown={onKey}
    >
      <h2 id={heading}>
        <Icon name="warning" />
        {words.value.question(interrupt.tool)}
      </h2>
      {interrupt.expiresAt && (
        <p class="soft small">
          {isExpired ? words.value.expired : words.value.expires(formatTime(interrupt.expiresAt))}
        </p>
      )}
      {form ? <FormFields form={form} /> : <CallArguments text={interrupt.arguments} />}
      <ApprovalChoices
        approval={approval}
        isHeld={isHeld}
        isExpired={isExpired}
        onApprove={() => void approve()}
        onDeny={() => void deny()}
        onChange={change}
      />
    </article>
  );
}
