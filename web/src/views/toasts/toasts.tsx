/** Toasts, announced to screen readers. */

import { bilingual } from "../../language/language.ts";
import { IconButton } from "../../parts/icon.tsx";
import { dismiss, toasts } from "../../state/toasts.ts";

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={`toast ${toast.kind}`}>
          <span>{toast.text}</span>
          {toast.action && (
            <button
              type="button"
              onClick={() => {
                toast.action?.act();
                dismiss(toast.id);
              }}
            >
              {toast.action.label}
            </button>
          )}
          <IconButton icon="close" label={words.value.dismiss} onClick={() => dismiss(toast.id)} />
        </div>
      ))}
    </div>
  );
}

export const words = bilingual({ dismiss: "Dismiss" }, { dismiss: "关闭" });
