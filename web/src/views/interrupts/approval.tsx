/** Cards for calls that need approval. On a focused card, `a` approves, `d` denies and `e` edits the arguments. */

import { useEffect, useId, useRef } from "preact/hooks";

import { formatTime } from "../../language/language.ts";
import { focusIfIdle, restoreFocus } from "../../parts/focus.ts";
import { Icon } from "../../parts/icon.tsx";
import { CallArguments, readArguments } from "../cards/call_details.tsx";
import { FormFields } from "../forms/form_fields.tsx";
import type { ApprovalState, Interrupt, InterruptState } from "./interrupt_state.ts";
import { words } from "./words.ts";

/** After the page moves the focus here, keys do nothing for this long, so that nobody approves by accident. */
const SETTLE_MS = 500;
const TYPING_MS = 1_000;

export function Approvals({ state }: { state: InterruptState }) {
  const interrupts = state.interrupts.value;

  async function approveAll(): Promise<void> {
    const decisions = interrupts.map((interrupt) => state.approvalOf(interrupt).approval());
    const valid = decisions.filter((decision) => decision !== null);
    if (valid.length === decisions.length && (await state.decide(interrupts, valid))) restoreFocus();
  }

  return (
    <>
      {interrupts.map((interrupt, index) => (
        <Approval key={interrupt.id} interrupt={interrupt} state={state} isFirst={index === 0} />
      ))}
      {interrupts.length > 1 && (
        <button type="button" class="approve-all" disabled={state.isLocked.value} onClick={() => void approveAll()}>
          {words.value.approveAll(interrupts.length)}
        </button>
      )}
    </>
  );
}

interface Props {
  readonly interrupt: Interrupt;
  readonly state: InterruptState;
  readonly isFirst: boolean;
}

function Approval({ interrupt, state, isFirst }: Props) {
  const card = useRef<HTMLElement>(null);
  const ignoreKeysUntil = useRef(-Infinity);
  const heading = useId();
  const approval = state.approvalOf(interrupt);
  const isLocked = state.isLocked.value;
  const isExpired = interrupt.expiresAt !== null && Date.parse(interrupt.expiresAt) <= Date.now();
  const form = approval.form.value;

  useEffect(() => {
    if (isFirst && !isLocked && focusIfIdle(card.current)) ignoreKeysUntil.current = performance.now() + SETTLE_MS;
  }, [isFirst, isLocked]);

  async function approve(): Promise<void> {
    const decision = isExpired ? null : approval.approval();
    if (decision && (await state.decide([interrupt], [decision]))) restoreFocus();
  }
  async function deny(): Promise<void> {
    if (await state.decide([interrupt], [approval.denial(isExpired)])) restoreFocus();
  }
  function toggleEdit(): void {
    if (form === null) approval.editArguments(words.value.arguments);
    else approval.discardEdits();
  }

  /** Handle keys only on the card itself, and not within words typed for another field. */
  function onKey(event: KeyboardEvent): void {
    if (event.target !== card.current || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const act = { a: approve, d: deny, e: toggleEdit }[event.key];
    if (!act && event.key.length === 1) ignoreKeysUntil.current = event.timeStamp + TYPING_MS;
    if (!act || isLocked) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.timeStamp > ignoreKeysUntil.current) void act();
  }

  return (
    <article
      ref={card}
      class="interrupt-card approval"
      tabIndex={0}
      aria-labelledby={heading}
      onKeyDown={onKey}
    >
      <h2 id={heading}>
        <Icon name="warning" />
        {questionOf(interrupt)}
      </h2>
      {interrupt.expiresAt && (
        <p class="soft small">
          {isExpired ? words.value.expired : words.value.expires(formatTime(interrupt.expiresAt))}
        </p>
      )}
      {form ? <FormFields form={form} /> : <CallArguments text={interrupt.arguments} />}
      {!isExpired && <Note approval={approval} />}
      <div class="choices">
        {!isExpired && (
          <button type="button" class="primary" disabled={isLocked} aria-keyshortcuts="a" onClick={() => void approve()}>
            {isLocked ? words.value.sending : form ? words.value.approveEdited : words.value.approve}
            <kbd aria-hidden="true">a</kbd>
          </button>
        )}
        <button type="button" class="danger" disabled={isLocked} aria-keyshortcuts="d" onClick={() => void deny()}>
          {words.value.deny}
          <kbd aria-hidden="true">d</kbd>
        </button>
        {!isExpired && (
          <button
            type="button"
            class="plain"
            disabled={isLocked}
            aria-expanded={form !== null}
            aria-keyshortcuts="e"
            onClick={toggleEdit}
          >
            {form ? words.value.discard : words.value.edit}
            <kbd aria-hidden="true">e</kbd>
          </button>
        )}
      </div>
    </article>
  );
}

function Note({ approval }: { approval: ApprovalState }) {
  const id = useId();
  const text = words.value;
  return (
    <div class="approval-note">
      <label for={id} class="small">
        {text.note} <span class="soft">{text.optional}</span>
      </label>
      <input
        id={id}
        autocomplete="off"
        maxLength={2000}
        placeholder={text.noteExample}
        value={approval.note.value}
        onInput={(event) => {
          approval.note.value = event.currentTarget.value;
        }}
      />
    </div>
  );
}

function questionOf(interrupt: Interrupt): string {
  const { questions } = words.value;
  const call = readArguments(interrupt.arguments);
  if (call.kind === "edit") return questions.edit(call.path.split("/").at(-1) || call.path);
  return call.kind === "command" ? questions.command : questions.call(interrupt.tool);
}
