/** All of the conversation takes files that are dropped on it, and says so while one is held over it. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { Icon } from "../../parts/icon.tsx";
import { attach } from "./attach.ts";
import "./drop_area.css";
import { draftOf } from "./draft.ts";
import { focusBox } from "./focus.ts";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
  readonly children: ComponentChildren;
}

export function DropArea({ thread, agent, children }: Props) {
  const isOver = useSignal(false);
  // Whatever is entered inside is entered before the other is left.
  const depth = useRef(0);
  useEffect(keepPage, []);
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
        focusBox();
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

/** A file that misses the conversation would be opened in the place of the page. */
function keepPage(): () => void {
  const keep = (event: DragEvent) => {
    if (hasFiles(event)) event.preventDefault();
  };
  addEventListener("dragover", keep);
  addEventListener("drop", keep);
  return () => {
    removeEventListener("dragover", keep);
    removeEventListener("drop", keep);
  };
}

function hasFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes("Files") ?? false;
}
