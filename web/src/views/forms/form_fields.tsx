/** Form view. Rarely needed fields are under “More options”. */

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { type Draft, type FormState, idOf, isDraftGroup } from "./draft.ts";
import type { Field } from "./field.ts";
import "./forms.css";
import {
  ChoiceInput,
  ChoicesInput,
  FlagInput,
  hasRadios,
  JsonInput,
  ListInput,
  NumberInput,
  TextInput,
} from "./inputs.tsx";
import { words } from "./words.ts";

interface FormProps {
  readonly form: FormState;
  /** Content below a field, such as a delete button. */
  readonly below?: (field: Field) => ComponentChildren;
}

export function FormFields({ form, below }: FormProps) {
  const rejections = form.rejections.value;
  useEffect(() => {
    if (rejections) focusFirst(form);
  }, [rejections]);
  const count = form.problems.value.length;
  return (
    <div class="form-fields" id={form.id}>
      <Fields form={form} fields={form.root.fields} path={[]} {...(below ? { below } : {})} />
      <p class="form-summary" role="alert">
        {count > 0 && words.value.invalid(count)}
      </p>
    </div>
  );
}

interface Props extends FormProps {
  readonly fields: readonly Field[];
  readonly path: readonly string[];
}

export function Fields({ form, fields, path, below }: Props) {
  const [usual, more] = [fields.filter((field) => !field.isAdvanced), fields.filter((field) => field.isAdvanced)];
  const renderField = (field: Field) => (
    <div key={field.name} class="form-slot">
      <FieldView form={form} field={field} path={[...path, field.name]} />
      {below?.(field)}
    </div>
  );
  const isInvalid = more.some((field) => form.problems.value.some((problem) => problem.path.includes(field.name)));
  return (
    <>
      {usual.map(renderField)}
      {more.length > 0 && (
        <details class="form-more" {...(isInvalid ? { open: true } : {})}>
          <summary>{words.value.more}</summary>
          <div class="form-fields">{more.map(renderField)}</div>
        </details>
      )}
    </>
  );
}

function focusFirst(form: FormState): void {
  const [first] = form.problems.value;
  if (!first) return;
  const element = document.getElementById(idOf(form.id, first.path));
  const target = element?.matches("fieldset, div") ? element.querySelector<HTMLElement>("input, select, textarea, button") : element;
  (target ?? document.getElementById(form.id))?.focus();
}

interface FieldProps {
  readonly form: FormState;
  readonly field: Field;
  readonly path: readonly string[];
}

function FieldView({ form, field, path }: FieldProps) {
  const id = idOf(form.id, path);
  const draft = path.reduce<Draft>((from, name) => (isDraftGroup(from) ? (from[name] ?? null) : null), form.draft.value);
  const problem = form.problemAt(path);
  const inputProps = {
    id,
    draft,
    isInvalid: problem !== null,
    describedBy: [field.description && `${id}-about`, problem && `${id}-wrong`].filter(Boolean).join(" "),
    onChange: (changed: Parameters<FormState["change"]>[1]) => form.change(path, changed),
  };
  switch (field.kind) {
    case "group":
      return (
        <fieldset class="form-group" id={id}>
          <legend>{field.title}</legend>
          <Description field={field} id={id} />
          <div class="form-fields">
            <Fields form={form} fields={field.fields} path={path} />
          </div>
          <FieldError form={form} path={path} id={id} />
        </fieldset>
      );
    case "flag":
      return (
        <div class="form-field">
          <FlagInput {...inputProps} field={field} />
          <Description field={field} id={id} />
          <FieldError form={form} path={path} id={id} />
        </div>
      );
    case "choice":
    case "choices":
    case "list":
      return (
        <FieldFrame form={form} field={field} path={path} isGroup={field.kind !== "choice" || hasRadios(field)}>
          {field.kind === "choice" && <ChoiceInput {...inputProps} field={field} />}
          {field.kind === "choices" && <ChoicesInput {...inputProps} field={field} />}
          {field.kind === "list" && (
            <ListInput {...inputProps} field={field} problemAt={(place) => form.problemAt([...path, String(place)])} />
          )}
        </FieldFrame>
      );
    case "text":
    case "number":
    case "json":
      return (
        <FieldFrame form={form} field={field} path={path} isGroup={false}>
          {field.kind === "text" && <TextInput {...inputProps} field={field} />}
          {field.kind === "number" && <NumberInput {...inputProps} field={field} />}
          {field.kind === "json" && <JsonInput {...inputProps} field={field} />}
        </FieldFrame>
      );
  }
}

/** A group of inputs has a legend, a single input has a label. */
function FieldFrame({ form, field, path, isGroup, children }: FieldProps & { isGroup: boolean; children: ComponentChildren }) {
  const id = idOf(form.id, path);
  const title = (
    <>
      {field.title}
      {!field.isRequired && <span class="form-optional soft"> {words.value.optional}</span>}
    </>
  );
  const below = (
    <>
      <Description field={field} id={id} />
      {children}
      <FieldError form={form} path={path} id={id} />
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

function Description({ field, id }: { field: Field; id: string }) {
  if (!field.description) return null;
  return (
    <p id={`${id}-about`} class="form-about soft small">
      {field.description}
    </p>
  );
}

function FieldError({ form, path, id }: { form: FormState; path: readonly string[]; id: string }) {
  const problem = form.problemAt(path);
  if (!problem) return null;
  return (
    <p id={`${id}-wrong`} class="form-error small">
      {words.value.errors[problem.code](problem.limit)}
    </p>
  );
}
