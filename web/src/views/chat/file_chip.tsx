/** A file of a message: a picture is shown, others by name; each with its kind and the id the model knows it by. */

import type { AttachedFile } from "../../conversation/messages.ts";
import { FileIcon } from "../../parts/file_icon.tsx";
import { ownPath } from "../../parts/own_path.ts";
import { words } from "./words.ts";

export function FileChip({ file }: { file: AttachedFile }) {
  const text = words.value;
  const path = ownPath(file.url);
  const kind = text.kinds[file.kind];
  const title = file.id ? text.fileId(file.id) : kind;
  const inner = (
    <>
      {file.kind === "image" && path ? (
        <img src={path} alt="" loading="lazy" width={56} height={56} />
      ) : (
        <FileIcon kind={file.kind} />
      )}
      <span class="file-words">
        <span class="file-name">{file.name || kind}</span>
        <span class="file-about">
          {kind}
          {file.id && ` · ${file.id}`}
        </span>
      </span>
    </>
  );
  return (
    <li class="file-chip" title={title}>
      {path ? (
        <a href={path} target="_blank" rel="noopener noreferrer">
          {inner}
        </a>
      ) : (
        <span>{inner}</span>
      )}
    </li>
  );
}
