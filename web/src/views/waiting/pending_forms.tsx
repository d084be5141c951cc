/** Forms that the model asks a person to fill in. Several are sent together, once all are answered. */

import { useEffect, useId, useMemo, useRef } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import { Icon } from "../../parts/icon.tsx";
import { FormFields } from "../forms/form_fields.tsx";
import { bringFocus, goOnWriting } from "./focus.ts";
import { declined, formOf, type FormShape } from "./pending_form.ts";
import type { PendingCall, WaitingState } from "./waiting_state.ts";
import { words } from "./words.ts";

interface Props {
  readonly state: WaitingState;
  readonly agent: Agent | null;
  readonly calls: readonly PendingCall[];
}

export function PendingForms({ state, agent, calls }: Props) {
  return (
    <>
      {calls.map((call) => {
        const shape = agent?.forms.find((form) => form.name === call.name);
        if (!shape) return null;
        const answer = (content: string) => state.answer(agent, calls, call, content);
        return (
          <PendingForm
            key={call.id}
            {...{ state, call, shape, answer }}
            locale={agent?.locale ?? "en"}
            isFirst={call === calls[0] && !state.interrupts.value.length}
          />
        );
      })}
    </>
  );
}

interface FormProps {
  readonly state: WaitingState;
  readonly call: PendingCall;
  readonly shape: FormShape;
  readonly locale: string;
  readonly isFirst: boolean;
  /** True once the server has it. */
  readonly answer: (content: string) => Promise<boolean>;
}

function PendingForm({ state, call, shape, locale, isFirst, answer }: FormProps) {
  const box = useRef<HTMLFormElement>(null);
  const heading = useId();
  const { title, about, form } = useMemo(() => formOf(call, shape, locale), [call.id, locale]);
  const isHeld = state.isHeld.value;
  const text = words.value;
  const isAnswered = state.answers.value.has(call.id);

  useEffect(() => {
    if (isFirst && !isHeld) bringFocus(box.current);
  }, [isFirst, isHeld]);

  async function send(content: string): Promise<void> {
    if (await answer(content)) goOnWriting();
  }
  function submit(event: Event): void {
    event.preventDefault();
    const value = form.read();
    if (value !== null) void send(JSON.stringify(value));
  }

  if (isAnswered && !isHeld) return <Answered title={title} onEdit={() => state.takeBack(call.id)} />;
  return (
    <form ref={box} class="waiting-card" noValidate tabIndex={-1} aria-labelledby={heading} lang={locale} onSubmit={submit}>
      <h2 id={heading}>
        <Icon name="sparkle" />
        {title}
      </h2>
      {about && <p class="soft small">{about}</p>}
      <FormFields form={form} />
      <div class="choices">
        <button type="submit" class="primary" disabled={isHeld}>
          {isHeld ? text.sending : text.send}
        </button>
        <button type="button" class="plain" disabled={isHeld} onClick={() => void send(declined(shape, text.declined))}>
          {text.ratherNot}
        </button>
      </div>
    </form>
  );
}

function Answered({ title, onEdit }: { title: string; onEdit: () => void }) {
  return (
    <p class="waiting-card answered">
      <Icon name="check" />
      <span>{words.value.answered(title)}</span>
      <button type="button" class="plain" onClick={onEdit}>
        {words.value.edit}
      </button>
    </p>
  );
}
