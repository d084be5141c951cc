/** A list of words or numbers: each on a line of its own, with a way to take it out, and one to add another. */

import { useRef } from "preact/hooks";

import { IconButton } from "../../parts/icon_button.tsx";
import { Icon } from "../../parts/icon.tsx";
import type { Problem } from "./draft.ts";
import type { ListField } from "./field.ts";
import { NumberInput, TextInput, type InputProps } from "./inputs.tsx";
import { words } from "./words.ts";

interface Props extends InputProps<ListField> {
  readonly problemAt: (place: number) => Problem | null;
}

export function ListInput({ field, id, draft, onChange, problemAt }: Props) {
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
        const given = {
          id: `${id}-${place}`,
          draft: item,
          isWrong: problem !== null,
          describedBy: problem ? `${id}-${place}-wrong` : "",
          label: text.item(field.title, place + 1),
          onChange: (changed: unknown) => onChange(items.with(place, String(changed))),
        };
        return (
          <div key={place} class="form-list-item">
            {field.item.kind === "text" ? (
              <TextInput {...given} field={field.item} />
            ) : (
              <NumberInput {...given} field={field.item} />
            )}
            <IconButton icon="close" label={text.remove(field.title, place + 1)} onClick={() => remove(place)} />
            {problem && (
              <p id={`${id}-${place}-wrong`} class="form-wrong small">
                {text.faults[problem.fault](problem.limit)}
              </p>
            )}
          </div>
        );
      })}
      {(field.maxItems === null || items.length < field.maxItems) && (
        <button type="button" class="plain small form-add" onClick={add}>
          <Icon name="plus" />
          {text.add}
          <span class="hidden-but-read"> {field.title}</span>
        </button>
      )}
    </div>
  );
}
