/** Short words at the edge of the page, read aloud as they come. */

import { dismiss, notices } from "../../state/notices.ts";
import { IconButton } from "../../parts/icon_button.tsx";
import { words } from "./words.ts";

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map((notice) => (
        <div key={notice.id} class={`notice ${notice.kind}`}>
          <span>{notice.text}</span>
          {notice.action && (
            <button
              type="button"
              onClick={() => {
                notice.action?.act();
                dismiss(notice.id);
              }}
            >
              {notice.action.label}
            </button>
          )}
          <IconButton icon="close" label={words.value.dismiss} onClick={() => dismiss(notice.id)} />
        </div>
      ))}
    </div>
  );
}
