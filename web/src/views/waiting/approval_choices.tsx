/** The choices at a call that waits, with the keys that do the same, and words that the model reads with either. */

import { useId } from "preact/hooks";

import type { ApprovalState } from "./approval_state.ts";
import { words } from "./words.ts";

interface Props {
  readonly approval: ApprovalState;
  readonly isHeld: boolean;
  readonly isExpired: boolean;
  readonly onApprove: () => void;
  readonly onDeny: () => void;
  readonly onChange: () => void;
}

export function ApprovalChoices({ approval, isHeld, isExpired, onApprove, onDeny, onChange }: Props) {
  const id = useId();
  const text = words.value;
  const isChanging = approval.form.value !== null;
  return (
    <>
      {!isExpired && (
        <div class="approval-words">
          <label for={id} class="small">
            {text.words} <span class="soft">{text.optional}</span>
          </label>
          <input
            id={id}
            autocomplete="off"
            maxLength={2000}
            placeholder={text.wordsExample}
            value={approval.words.value}
            onInput={(event) => {
              approval.words.value = event.currentTarget.value;
            }}
          />
        </div>
      )}
      <div class="choices">
        {!isExpired && (
          <button type="button" class="primary" disabled={isHeld} aria-keyshortcuts="a" onClick={onApprove}>
            {isHeld ? text.sending : isChanging ? text.approveChanged : text.approve}
            <Key name="a" />
          </button>
        )}
        <button type="button" class="danger" disabled={isHeld} aria-keyshortcuts="d" onClick={onDeny}>
          {text.deny}
          <Key name="d" />
        </button>
        {!isExpired && (
          <button type="button" class="plain" disabled={isHeld} aria-expanded={isChanging} aria-keyshortcuts="e" onClick={onChange}>
            {isChanging ? text.keep : text.change}
            <Key name="e" />
          </button>
        )}
      </div>
    </>
  );
}

function Key({ name }: { name: string }) {
  return <kbd aria-hidden="true">{name}</kbd>;
}
