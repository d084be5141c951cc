/** Drop target for files that covers the whole conversation. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { focusMessageBox } from "../../parts/focus.ts";
import { Icon } from "../../parts/icon.tsx";
import { draftOf } from "./draft.ts";
import { attach } from "./uploads.ts";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
  readonly children: ComponentChildren;
}

export function DropArea({ thread, agent, children }: Props) {
  const isOver = useSignal(false);
  // A child element is entered before its parent is left.
  const depth = useRef(0);
  useEffect(blockStrayDrops, []);
  const move = (event: DragEvent, step: number) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth.current = Math.max(0, depth.current + step);
    isOver.value = depth.current > 0;
  };
  return (
    <div
      class="drop-area"
      onDragEnter={(event) => move(event, 1)}
      onDragOver={(event) => move(event, 0)}
      onDragLeave={(event) => move(event, -1)}
      onDrop={(event) => {
        move(event, -depth.current);
        const files = [...(event.dataTransfer?.files ?? [])];
        if (!files.length) return;
        attach(draftOf(thread).uploads, agent, files);
        focusMessageBox();
      }}
    >
      {children}
      {isOver.value && (
        <div class="drop-target">
          <p>
            <Icon name={agent?.fileInput ? "attach" : "close"} />
            {agent?.fileInput ? words.value.drop : words.value.noFiles}
          </p>
        </div>
      )}
    </div>
  );
}

/** Without this, the browser opens a file that misses the drop target. */
function blockStrayDrops(): () => void {
  const block = (event: DragEvent) => {
    if (hasFiles(event)) event.preventDefault();
  };
  addEventListener("dragover", block);
  addEventListener("drop", block);
  return () => {
    removeEventListener("dragover", block);
    removeEventListener("drop", block);
  };
}

function hasFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") ?? false;
}
