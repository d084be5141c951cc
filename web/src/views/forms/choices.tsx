/** Inputs that choose: one of some, several of some, yes or no. */

import type { ChoiceField, ChoicesField, FlagField } from "./field.ts";
import type { InputProps } from "./inputs.tsx";
import { words } from "./words.ts";

/** Few are all seen at once. */
const FEW = 4;

export function ChoiceInput(props: InputProps<ChoiceField>) {
  return props.field.options.length <= FEW ? <Radios {...props} /> : <Select {...props} />;
}

function Radios({ field, id, draft, describedBy, onChange }: InputProps<ChoiceField>) {
  const options = field.options.map((option) => ({ label: option.label, text: JSON.stringify(option.value) }));
  const all = field.isRequired ? options : [...options, { label: words.value.notSaid, text: "" }];
  return (
    <div class="form-boxes">
      {all.map(({ label, text }) => (
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

function Select({ field, id, draft, isWrong, describedBy, onChange }: InputProps<ChoiceField>) {
  return (
    <select
      id={id}
      value={typeof draft === "string" ? draft : ""}
      aria-required={field.isRequired}
      aria-invalid={isWrong}
      {...(describedBy ? { "aria-describedby": describedBy } : {})}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      <option value="">{field.isRequired ? words.value.choose : words.value.notSaid}</option>
      {field.options.map((option) => (
        <option key={JSON.stringify(option.value)} value={JSON.stringify(option.value)}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

export function ChoicesInput({ field, draft, onChange }: InputProps<ChoicesField>) {
  const chosen: readonly string[] = Array.isArray(draft) ? draft : [];
  return (
    <div class="form-boxes">
      {field.options.map((option) => {
        const text = JSON.stringify(option.value);
        return (
          <label key={text} class="form-box">
            <input
              type="checkbox"
              checked={chosen.includes(text)}
              onChange={(event) => {
                const others = chosen.filter((one) => one !== text);
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
