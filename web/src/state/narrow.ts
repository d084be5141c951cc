/** Whether the page is so narrow that one view stands alone, as styles/layout.css has it. */

import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 48rem)");

export const isNarrow = signal(query.matches);

query.addEventListener("change", () => {
  isNarrow.value = query.matches;
});
