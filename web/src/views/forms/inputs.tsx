/** Inputs for words, numbers and JSON: those the browser has, which know keyboards, pickers and languages. */

import type { ComponentChildren } from "preact";

import type { Draft } from "./draft.ts";
import type { JsonField, NumberField, TextField } from "./field.ts";
import { words } from "./words.ts";

export interface InputProps<Kind> {
  readonly field: Kind;
  readonly id: string;
  readonly draft: Draft;
  readonly isWrong: boolean;
  /** Ids of what is said of it; empty where nothing is. */
  readonly describedBy: string;
  /** Of one among several that share a label. */
  readonly label?: string;
  readonly onChange: (draft: Draft) => void;
}

const TYPES = { text: "text", date: "date", time: "time", email: "email", uri: "url" } as const;

export function TextInput(props: InputProps<TextField>) {
  const { field, draft, onChange } = props;
  const shared = {
    ...sharedOf(props),
    placeholder: field.example ? words.value.such(field.example) : "",
    value: typeof draft === "string" ? draft : "",
  };
  if (field.format === "long") {
    return <textarea {...shared} rows={3} onInput={(event) => onChange(event.currentTarget.value)} />;
  }
  const input = (
    <input
      {...shared}
      // Its types are told apart by what else they take; all of these take what is given here.
      type={TYPES[field.format] as "text"}
      disabled={draft === false}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
  if (field.unknown === null) return input;
  return (
    <WithUnknown {...props} said={field.unknown}>
      {input}
    </WithUnknown>
  );
}

interface UnknownProps extends InputProps<TextField> {
  readonly said: string;
  readonly children: ComponentChildren;
}

/** A box beside it says that it is not known: then there is nothing to fill in. The draft is false meanwhile. */
function WithUnknown({ id, draft, onChange, said, children }: UnknownProps) {
  return (
    <div class="form-with-unknown">
      {children}
      <label class="form-box">
        <input
          id={`${id}-unknown`}
          type="checkbox"
          checked={draft === false}
          onChange={(event) => onChange(event.currentTarget.checked ? false : "")}
        />
        {said}
      </label>
    </div>
  );
}

export function NumberInput(props: InputProps<NumberField>) {
  const { field, draft, onChange } = props;
  return (
    <input
      {...sharedOf(props)}
      type="number"
      inputMode={field.isWhole && (field.minimum ?? -1) >= 0 ? "numeric" : "decimal"}
      step={field.isWhole ? 1 : "any"}
      {...(field.minimum === null ? {} : { min: field.minimum })}
      {...(field.maximum === null ? {} : { max: field.maximum })}
      placeholder={field.example ? words.value.such(field.example) : ""}
      value={typeof draft === "string" ? draft : ""}
      onInput={(event) => onChange(readTyped(event.currentTarget))}
    />
  );
}

/** The browser hides what it cannot read as a number; told apart from nothing, it is told as wrong. */
function readTyped(input: HTMLInputElement): string {
  return input.validity.badInput ? "?" : input.value;
}

export function JsonInput(props: InputProps<JsonField>) {
  const { draft, onChange } = props;
  return (
    <textarea
      {...sharedOf(props)}
      class="form-json"
      rows={4}
      spellcheck={false}
      placeholder={words.value.asJson}
      value={typeof draft === "string" ? draft : ""}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}

function sharedOf({ field, id, isWrong, describedBy, label }: InputProps<TextField | NumberField | JsonField>) {
  return {
    id,
    name: id,
    autocomplete: "off" as const,
    "aria-required": field.isRequired,
    "aria-invalid": isWrong,
    ...(describedBy ? { "aria-describedby": describedBy } : {}),
    ...(label ? { "aria-label": label } : {}),
  };
}
