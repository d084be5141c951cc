/** The fields of a form, one after another; what is seldom needed stands behind a fold. */

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { FieldView } from "./field_view.tsx";
import type { Field } from "./field.ts";
import { idOf, type FormState } from "./form_state.ts";
import "./forms.css";
import { words } from "./words.ts";

interface FormProps {
  readonly form: FormState;
  /** What stands below a field, such as a way to forget it. */
  readonly below?: (field: Field) => ComponentChildren;
}

export function FormFields({ form, below }: FormProps) {
  const refusals = form.refusals.value;
  useEffect(() => {
    if (refusals) focusFirst(form);
  }, [refusals]);
  const count = form.problems.value.length;
  return (
    <div class="form-fields" id={form.id}>
      <Fields form={form} fields={form.root.value.fields} path={[]} {...(below ? { below } : {})} />
      <p class="form-told" role="alert">
        {count > 0 && words.value.wrong(count)}
      </p>
    </div>
  );
}

interface Props extends FormProps {
  readonly fields: readonly Field[];
  readonly path: readonly string[];
}

export function Fields({ form, fields, path, below }: Props) {
  const [usual, more] = [fields.filter((field) => !field.isMore), fields.filter((field) => field.isMore)];
  const draw = (field: Field) => (
    <div key={field.name} class="form-slot">
      <FieldView form={form} field={field} path={[...path, field.name]} />
      {below?.(field)}
    </div>
  );
  const isWrong = more.some((field) => form.problems.value.some((problem) => problem.path.includes(field.name)));
  return (
    <>
      {usual.map(draw)}
      {more.length > 0 && (
        <details class="form-more" {...(isWrong ? { open: true } : {})}>
          <summary>{words.value.more}</summary>
          <div class="form-fields">{more.map(draw)}</div>
        </details>
      )}
    </>
  );
}

function focusFirst(form: FormState): void {
  const [first] = form.problems.value;
  if (!first) return;
  const found = document.getElementById(idOf(form.id, first.path));
  const target = found?.matches("fieldset, div") ? found.querySelector<HTMLElement>("input, select, textarea, button") : found;
  (target ?? document.getElementById(form.id))?.focus();
}
