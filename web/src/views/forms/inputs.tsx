/** Inputs for each kind of field, based on native elements. */

import { useRef } from "preact/hooks";

import { Icon, IconButton } from "../../parts/icon.tsx";
import type { Draft, Problem } from "./draft.ts";
import type { ChoiceField, ChoicesField, FlagField, JsonField, ListField, NumberField, TextField } from "./field.ts";
import { words } from "./words.ts";

interface InputProps<Kind> {
  readonly field: Kind;
  readonly id: string;
  readonly draft: Draft;
  readonly isInvalid: boolean;
  /** Ids of the description and error, or an empty string. */
  readonly describedBy: string;
  /** Accessible name of an input without its own label. */
  readonly label?: string;
  readonly onChange: (draft: Draft) => void;
}

const TYPES = { text: "text", date: "date", time: "time", email: "email", uri: "url" } as const;

export function TextInput(props: InputProps<TextField>) {
  const { field, draft, onChange } = props;
  const shared = {
    ...commonProps(props),
    placeholder: field.example ? words.value.example(field.example) : "",
    value: typeof draft === "string" ? draft : "",
  };
  if (field.format === "long") {
    return <textarea {...shared} rows={3} onInput={(event) => onChange(event.currentTarget.value)} />;
  }
  // Preact types the props of each input type separately. All types here accept these props.
  const type = TYPES[field.format] as "text";
  return <input {...shared} type={type} onInput={(event) => onChange(event.currentTarget.value)} />;
}

export function NumberInput(props: InputProps<NumberField>) {
  const { field, draft, onChange } = props;
  return (
    <input
      {...commonProps(props)}
      type="number"
      inputMode={field.isInteger && (field.minimum ?? -1) >= 0 ? "numeric" : "decimal"}
      step={field.isInteger ? 1 : "any"}
      {...(field.minimum === null ? {} : { min: field.minimum })}
      {...(field.maximum === null ? {} : { max: field.maximum })}
      placeholder={field.example ? words.value.example(field.example) : ""}
      value={typeof draft === "string" ? draft : ""}
      // A number input hides invalid text. Report text that fails validation, so that it does not count as empty.
      onInput={({ currentTarget: input }) => onChange(input.validity.badInput ? "?" : input.value)}
    />
  );
}

export function JsonInput(props: InputProps<JsonField>) {
  const { draft, onChange } = props;
  return (
    <textarea
      {...commonProps(props)}
      class="form-json"
      rows={4}
      spellcheck={false}
      placeholder={words.value.json}
      value={typeof draft === "string" ? draft : ""}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}

function commonProps({ field, id, isInvalid, describedBy, label }: InputProps<TextField | NumberField | JsonField>) {
  return {
    id,
    name: id,
    autocomplete: "off" as const,
    "aria-required": field.isRequired,
    "aria-invalid": isInvalid,
    ...(describedBy ? { "aria-describedby": describedBy } : {}),
    ...(label ? { "aria-label": label } : {}),
  };
}

/** Fields with more options use a select. */
const MAX_RADIOS = 4;

export function ChoiceInput(props: InputProps<ChoiceField>) {
  const { field, draft } = props;
  const options = field.options.filter((option) => !option.isHidden || JSON.stringify(option.value) === draft);
  const choices = { ...props, field: { ...field, options } };
  return hasRadios(field) ? <Radios {...choices} /> : <Select {...choices} />;
}

export function hasRadios(field: ChoiceField): boolean {
  return field.options.filter((option) => !option.isHidden).length <= MAX_RADIOS;
}

function Radios({ field, id, draft, describedBy, onChange }: InputProps<ChoiceField>) {
  const options = field.options.map((option) => ({ label: option.label, text: JSON.stringify(option.value) }));
  const choices = field.isRequired ? options : [...options, { label: words.value.none, text: "" }];
  return (
    <div class="form-boxes">
      {choices.map(({ label, text }) => (
        <label key={text} class="form-box">
          <input
            type="radio"
            name={id}
            value={text}
            checked={(draft || "") === text}
            {...(describedBy ? { "aria-describedby": describedBy } : {})}
            onChange={() => onChange(text)}
          />
          {label}
        </label>
      ))}
    </div>
  );
}

function Select({ field, id, draft, isInvalid, describedBy, onChange }: InputProps<ChoiceField>) {
  return (
    <select
      id={id}
      value={typeof draft === "string" ? draft : ""}
      aria-required={field.isRequired}
      aria-invalid={isInvalid}
      {...(describedBy ? { "aria-describedby": describedBy } : {})}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      <option value="">{field.isRequired ? words.value.choose : words.value.none}</option>
      {field.options.map((option) => (
        <option key={JSON.stringify(option.value)} value={JSON.stringify(option.value)}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

export function ChoicesInput({ field, draft, onChange }: InputProps<ChoicesField>) {
  const selected: readonly string[] = Array.isArray(draft) ? draft : [];
  return (
    <div class="form-boxes">
      {field.options.map((option) => {
        const text = JSON.stringify(option.value);
        return (
          <label key={text} class="form-box">
            <input
              type="checkbox"
              checked={selected.includes(text)}
              onChange={(event) => {
                const others = selected.filter((value) => value !== text);
                onChange(event.currentTarget.checked ? [...others, text] : others);
              }}
            />
            {option.label}
          </label>
        );
      })}
    </div>
  );
}

export function FlagInput({ field, id, draft, describedBy, onChange }: InputProps<FlagField>) {
  return (
    <label class="form-box" for={id}>
      <input
        id={id}
        type="checkbox"
        checked={draft === true}
        {...(describedBy ? { "aria-describedby": describedBy } : {})}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      {field.title}
    </label>
  );
}

interface ListProps extends InputProps<ListField> {
  readonly problemAt: (place: number) => Problem | null;
}

export function ListInput({ field, id, draft, onChange, problemAt }: ListProps) {
  const items: readonly string[] = Array.isArray(draft) ? draft : [];
  const box = useRef<HTMLDivElement>(null);
  const text = words.value;

  function add(): void {
    onChange([...items, ""]);
    requestAnimationFrame(() => document.getElementById(`${id}-${items.length}`)?.focus());
  }
  function remove(place: number): void {
    onChange(items.filter((_, one) => one !== place));
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(".form-add")?.focus());
  }

  return (
    <div class="form-list" ref={box}>
      {items.map((item, place) => {
        const problem = problemAt(place);
        const inputProps = {
          id: `${id}-${place}`,
          draft: item,
          isInvalid: problem !== null,
          describedBy: problem ? `${id}-${place}-wrong` : "",
          label: text.item(field.title, place + 1),
          onChange: (changed: unknown) => onChange(items.with(place, String(changed))),
        };
        return (
          <div key={place} class="form-list-item">
            {field.item.kind === "text" ? (
              <TextInput {...inputProps} field={field.item} />
            ) : (
              <NumberInput {...inputProps} field={field.item} />
            )}
            <IconButton icon="close" label={text.remove(field.title, place + 1)} onClick={() => remove(place)} />
            {problem && (
              <p id={`${id}-${place}-wrong`} class="form-error small">
                {text.errors[problem.code](problem.limit)}
              </p>
            )}
          </div>
        );
      })}
      {(field.maxItems === null || items.length < field.maxItems) && (
        <button type="button" class="plain small form-add" onClick={add}>
          <Icon name="plus" />
          {text.add}
          <span class="visually-hidden"> {field.title}</span>
        </button>
      )}
    </div>
  );
}
