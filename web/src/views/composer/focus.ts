/** Where one writes gets the focus, once what was changed is drawn. */

import { WRITE_ID } from "../help/shortcuts.tsx";

export function focusBox(): void {
  requestAnimationFrame(() => document.getElementById(WRITE_ID)?.focus());
}
