/** The files of the next message: each with its size, how far it is, and why it was not taken. */

import type { Agent } from "../../api/routes.ts";
import { formatBytes } from "../../language/language.ts";
import { FileIcon, kindOfType } from "../../parts/file_icon.tsx";
import { IconButton } from "../../parts/icon_button.tsx";
import { ownPath } from "../../parts/own_path.ts";
import type { Upload, Uploads } from "../../state/uploads.ts";
import { words } from "./words.ts";

export function UploadList({ uploads, agent }: { uploads: Uploads; agent: Agent | null }) {
  const list = uploads.list.value;
  if (!list.length) return null;
  return (
    <ul class="uploads" aria-label={words.value.attached}>
      {list.map((upload) => (
        <UploadChip
          key={upload.key}
          upload={upload}
          onRemove={() => uploads.remove(upload.key)}
          onRetry={() => uploads.retry(upload.key, agent?.name ?? null)}
        />
      ))}
    </ul>
  );
}

interface Props {
  readonly upload: Upload;
  readonly onRemove: () => void;
  readonly onRetry: () => void;
}

function UploadChip({ upload, onRemove, onRetry }: Props) {
  const text = words.value;
  const { name, state } = upload;
  return (
    <li class={`upload ${state}`}>
      <Picture upload={upload} />
      <div class="file-words">
        <span class="file-name">{name}</span>
        <About upload={upload} />
      </div>
      {state === "failed" && <IconButton icon="retry" label={text.retry(name)} onClick={onRetry} />}
      <IconButton
        icon="close"
        label={state === "uploading" ? text.cancel(name) : text.remove(name)}
        onClick={onRemove}
      />
    </li>
  );
}

function Picture({ upload: { preview, file, mimeType } }: Pick<Props, "upload">) {
  const kind = file?.kind ?? kindOfType(mimeType);
  const source = preview ?? (file?.kind === "image" ? ownPath(file.url) : null);
  return source ? <img src={source} alt="" width={40} height={40} /> : <FileIcon kind={kind} />;
}

function About({ upload: { name, size, state, progress, problem } }: Pick<Props, "upload">) {
  const text = words.value;
  const percent = Math.round(progress * 100);
  switch (state) {
    case "uploading":
      return (
        <div
          class="upload-bar"
          role="progressbar"
          aria-label={text.uploading(name)}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={percent}
        >
          <div style={{ width: `${percent}%` }} />
        </div>
      );
    case "failed":
      return (
        <span class="upload-problem" role="alert">
          {problem || text.unreached}
        </span>
      );
    case "ready":
      return size ? <span class="file-about">{formatBytes(size)}</span> : null;
  }
}
