/** Files from wherever they come: picked, dropped or pasted. */

import type { Agent } from "../../api/routes.ts";
import { notify } from "../../state/notices.ts";
import type { Uploads } from "../../state/uploads.ts";
import { words } from "./words.ts";

export function attach(uploads: Uploads, agent: Agent | null, files: readonly File[]): void {
  if (!agent?.fileInput) notify(words.value.noFiles);
  else uploads.add(files, agent.name);
}

/** What the picker offers. Any text is a document, whatever its name ends in, so with documents it offers all. */
export function acceptOf(input: NonNullable<Agent["fileInput"]>): string | undefined {
  if (input.documents) return undefined;
  const kinds = [input.images && "image/*", input.audio && "audio/*", input.video && "video/*"].filter(Boolean);
  return [...kinds, ...input.endings.map((ending) => `.${ending.replace(/^\./, "")}`)].join(",");
}
