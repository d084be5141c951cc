/** Calls of a thread that need an answer from the user: approvals and forms. */

import { useEffect, useId, useMemo, useRef } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { focusIfIdle, restoreFocus } from "../../parts/focus.ts";
import { Icon } from "../../parts/icon.tsx";
import { FormState } from "../forms/draft.ts";
import { FormFields } from "../forms/form_fields.tsx";
import { isObject, type JsonObject, parseJson } from "../forms/json.ts";
import { readable, readSchema } from "../forms/read_schema.ts";
import { Approvals } from "./approval.tsx";
import { InterruptState, type PendingCall } from "./interrupt_state.ts";
import "./interrupts.css";
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
  const announcements = [approvals && text.approvals(approvals), forms.length && text.forms(forms.length)].filter(Boolean);
  return (
    <>
      <p class="visually-hidden" role="status">
        {!thread.isRunning.value && announcements.join(" ")}
      </p>
      {announcements.length > 0 && (
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

type FormShape = Agent["forms"][number];

/** A tool with this parameter accepts `true` for a form that the user skips. No form shows it as a field. */
const CANCELLED = "cancelled";

interface FormsProps {
  readonly state: InterruptState;
  readonly agent: Agent | null;
  readonly calls: readonly PendingCall[];
}

export function PendingForms({ state, agent, calls }: FormsProps) {
  return (
    <>
      {calls.map((call) => {
        const shape = agent?.forms.find((form) => form.name === call.name);
        if (!agent || !shape) return null;
        return (
          <PendingForm
            key={call.id}
            {...{ state, agent, call, shape }}
            isFirst={call === calls[0] && !state.interrupts.value.length}
            onAnswer={(content) => state.answer(agent, calls, call, content)}
          />
        );
      })}
    </>
  );
}

interface FormProps {
  readonly state: InterruptState;
  readonly agent: Agent;
  readonly call: PendingCall;
  readonly shape: FormShape;
  readonly isFirst: boolean;
  /** Resolves to true once the server has accepted the answer. */
  readonly onAnswer: (content: string) => Promise<boolean>;
}

function PendingForm({ state, agent, call, shape, isFirst, onAnswer }: FormProps) {
  const box = useRef<HTMLFormElement>(null);
  const heading = useId();
  const { locale } = agent;
  const { title, description, form } = useMemo(() => formOf(call, shape, agent), [call.id, locale]);
  const isLocked = state.isLocked.value;
  const text = words.value;

  useEffect(() => {
    if (isFirst && !isLocked) focusIfIdle(box.current);
  }, [isFirst, isLocked]);

  async function send(content: string): Promise<void> {
    if (await onAnswer(content)) restoreFocus();
  }
  function submit(event: Event): void {
    event.preventDefault();
    const value = form.read();
    if (value !== null) void send(JSON.stringify(value));
  }

  if (state.answers.value.has(call.id) && !isLocked) {
    return (
      <p class="interrupt-card answered">
        <Icon name="check" />
        <span>{text.ready(title)}</span>
        <button type="button" class="plain" onClick={() => state.removeAnswer(call.id)}>
          {text.editAnswer}
        </button>
      </p>
    );
  }
  return (
    <form ref={box} class="interrupt-card" noValidate tabIndex={-1} aria-labelledby={heading} lang={locale} onSubmit={submit}>
      <h2 id={heading}>
        <Icon name="sparkle" />
        {title}
      </h2>
      {description && <p class="soft small">{description}</p>}
      <FormFields form={form} />
      <div class="choices">
        <button type="submit" class="primary" disabled={isLocked}>
          {isLocked ? text.sending : text.submit}
        </button>
        <button type="button" class="plain" disabled={isLocked} onClick={() => void send(skipped(shape, text.skipped))}>
          {text.skip}
        </button>
      </div>
    </form>
  );
}

/** Return the form of a pending call, filled with the arguments that the model has already given. */
function formOf(call: PendingCall, shape: FormShape, agent: Agent) {
  const schema = formSchema(shape.parameters as JsonObject, agent.profileSchema as JsonObject | null);
  const root = readSchema(schema);
  const value = parseJson(call.arguments);
  const form = new FormState(root, isObject(value) ? value : {});
  return { title: root.title || readable(call.name), description: root.description ?? shape.description, form };
}

/**
 * Return the schema of a form.
 *
 * Parameters of a tool describe themselves to models. If one field of the agent's profile has them all, the form
 * takes that field's schema, which has titles and descriptions for people.
 */
export function formSchema(parameters: JsonObject, profileSchema: JsonObject | null): JsonObject {
  const names = Object.keys(propertiesOf(parameters)).filter((name) => name !== CANCELLED);
  const fields = Object.values(propertiesOf(profileSchema)).filter(isObject);
  const match = fields.find((field) => names.length > 0 && names.every((name) => name in propertiesOf(field)));
  const properties = Object.entries(propertiesOf(match ?? parameters)).filter(([name]) => names.includes(name));
  return { ...(match ?? parameters), properties: Object.fromEntries(properties) };
}

function propertiesOf(schema: JsonObject | null): JsonObject {
  const properties = schema?.["properties"];
  return isObject(properties) ? properties : {};
}

/** Return the JSON that tells the tool that the user skipped its form. */
function skipped(shape: FormShape, reason: string): string {
  const canCancel = CANCELLED in propertiesOf(shape.parameters as JsonObject);
  return JSON.stringify(canCancel ? { [CANCELLED]: true } : { error: reason });
}
