/** One field of a form, by its kind, with its name, what it is for, and what is wrong with it. */

import type { ComponentChildren } from "preact";

import { JsonInput, NumberInput, TextInput } from "./inputs.tsx";
import { ChoiceInput, ChoicesInput, FlagInput } from "./choices.tsx";
import type { Field } from "./field.ts";
import { Fields } from "./form_fields.tsx";
import { idOf, type FormState } from "./form_state.ts";
import { ListInput } from "./list_input.tsx";
import { words } from "./words.ts";
import { draftAt } from "./draft_at.ts";

interface Props {
  readonly form: FormState;
  readonly field: Field;
  readonly path: readonly string[];
}

export function FieldView({ form, field, path }: Props) {
  const id = idOf(form.id, path);
  const draft = draftAt(form.draft.value, path);
  const problem = form.problemAt(path);
  const given = {
    id,
    draft,
    isWrong: problem !== null,
    describedBy: [field.description && `${id}-about`, problem && `${id}-wrong`].filter(Boolean).join(" "),
    onChange: (changed: Parameters<FormState["change"]>[1]) => form.change(path, changed),
  };
  switch (field.kind) {
    case "group":
      return (
        <fieldset class="form-group" id={id}>
          <legend>{field.title}</legend>
          <About field={field} id={id} />
          <div class="form-fields">
            <Fields form={form} fields={field.fields} path={path} />
          </div>
          <Wrong form={form} path={path} id={id} />
        </fieldset>
      );
    case "flag":
      return (
        <div class="form-field">
          <FlagInput {...given} field={field} />
          <About field={field} id={id} />
          <Wrong form={form} path={path} id={id} />
        </div>
      );
    case "choice":
    case "choices":
    case "list":
      return (
        <Frame form={form} field={field} path={path} isGroup={field.kind !== "choice" || field.options.length <= 4}>
          {field.kind === "choice" && <ChoiceInput {...given} field={field} />}
          {field.kind === "choices" && <ChoicesInput {...given} field={field} />}
          {field.kind === "list" && (
            <ListInput {...given} field={field} problemAt={(place) => form.problemAt([...path, String(place)])} />
          )}
        </Frame>
      );
    case "text":
    case "number":
    case "json":
      return (
        <Frame form={form} field={field} path={path} isGroup={false}>
          {field.kind === "text" && <TextInput {...given} field={field} />}
          {field.kind === "number" && <NumberInput {...given} field={field} />}
          {field.kind === "json" && <JsonInput {...given} field={field} />}
        </Frame>
      );
  }
}

/** Several inputs have a legend together, a single one its label. */
function Frame({ form, field, path, isGroup, children }: Props & { isGroup: boolean; children: ComponentChildren }) {
  const id = idOf(form.id, path);
  const title = (
    <>
      {field.title}
      {!field.isRequired && <span class="form-optional soft"> {words.value.optional}</span>}
    </>
  );
  const below = (
    <>
      <About field={field} id={id} />
      {children}
      <Wrong form={form} path={path} id={id} />
    </>
  );
  return isGroup ? (
    <fieldset class="form-field form-several" id={id} tabIndex={-1}>
      <legend>{title}</legend>
      {below}
    </fieldset>
  ) : (
    <div class="form-field">
      <label for={id}>{title}</label>
      {below}
    </div>
  );
}

function About({ field, id }: { field: Field; id: string }) {
  if (!field.description) return null;
  return (
    <p id={`${id}-about`} class="form-about soft small">
      {field.description}
    </p>
  );
}

function Wrong({ form, path, id }: { form: FormState; path: readonly string[]; id: string }) {
  const problem = form.problemAt(path);
  if (!problem) return null;
  return (
    <p id={`${id}-wrong`} class="form-wrong small">
      {words.value.faults[problem.fault](problem.limit)}
    </p>
  );
}
