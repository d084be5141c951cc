/** Everything that the server has of a user, to take along. */

import { useSignal } from "@preact/signals";

import { Icon } from "../../parts/icon.tsx";
import { notifyError } from "../../state/notices.ts";
import { exportData } from "./export_data.ts";
import { words } from "./words.ts";

export function ExportSection() {
  const isBusy = useSignal(false);
  const text = words.value;
  async function take(): Promise<void> {
    isBusy.value = true;
    await exportData().catch(notifyError);
    isBusy.value = false;
  }
  return (
    <section class="profile-section">
      <h2>{text.exportTitle}</h2>
      <p class="soft small">{text.exportAbout}</p>
      <button type="button" disabled={isBusy.value} onClick={() => void take()}>
        <Icon name="download" />
        {isBusy.value ? text.exporting : text.export}
      </button>
    </section>
  );
}
