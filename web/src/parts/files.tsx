/** Icons, URLs and downloads of files. */

import type { FileKind } from "../conversation/messages.ts";
import { Icon, type IconName } from "./icon.tsx";

const ICONS: Readonly<Record<FileKind, IconName>> = { document: "file", image: "image", audio: "sound", video: "film" };

export function FileIcon({ kind }: { kind: FileKind }) {
  return <Icon name={ICONS[kind]} />;
}

/** Return the kind of a local file by its MIME type. */
export function kindOfType(mimeType: string): FileKind {
  const family = mimeType.split("/")[0];
  return family === "image" || family === "audio" || family === "video" ? family : "document";
}

const FILES = "/api/v1/agent/files/";

/** Return the path of a file on this server under any host name, or null for other URLs. */
export function serverFilePath(url: string): string | null {
  try {
    const { pathname, search } = new URL(url, location.origin);
    return pathname.startsWith(FILES) ? pathname + search : null;
  } catch {
    return null;
  }
}

/** The browser reads the blob after the click, so its URL has to stay valid for a while. */
const REVOKE_MS = 60_000;

export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_MS);
}
