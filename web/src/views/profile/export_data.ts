/** All that is kept of a user, as a file of this browser. */

import { send } from "../../api/request.ts";

const NAME = "recto-export.ndjson";
const FORGET_MS = 60_000;

export async function exportData(): Promise<void> {
  const response = await send("/api/v1/agent/me/export");
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = NAME;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), FORGET_MS);
}
