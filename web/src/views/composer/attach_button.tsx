/** Opens the browser's picker of files. */

import { useRef } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import { IconButton } from "../../parts/icon_button.tsx";
import type { Uploads } from "../../state/uploads.ts";
import { acceptOf, attach } from "./attach.ts";
import { words } from "./words.ts";

export function AttachButton({ uploads, agent }: { uploads: Uploads; agent: Agent }) {
  const picker = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton icon="attach" label={words.value.attach} onClick={() => picker.current?.click()} />
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        aria-label={words.value.attach}
        accept={agent.fileInput ? acceptOf(agent.fileInput) : undefined}
        onChange={(event) => {
          attach(uploads, agent, [...(event.currentTarget.files ?? [])]);
          // The same file can be picked again.
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}
