/** The sign of a kind of file. */

import type { FileKind } from "../conversation/messages.ts";
import { Icon, type IconName } from "./icon.tsx";

const ICONS: Readonly<Record<FileKind, IconName>> = { document: "file", image: "image", audio: "sound", video: "film" };

export function FileIcon({ kind }: { kind: FileKind }) {
  return <Icon name={ICONS[kind]} />;
}

/** By what the browser says of a file that nobody has read yet. */
export function kindOfType(mimeType: string): FileKind {
  const family = mimeType.split("/")[0];
  return family === "image" || family === "audio" || family === "video" ? family : "document";
}
