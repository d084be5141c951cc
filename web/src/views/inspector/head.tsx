/** Header of the inspector: the call, links to its neighbors, and close. */

import { useEffect, useRef } from "preact/hooks";

import type { CallRef, ThreadCall } from "../../api/calls.ts";
import { formatNumber } from "../../language/language.ts";
import { CopyButton } from "../../parts/clipboard.tsx";
import { saveFile } from "../../parts/files.tsx";
import { isShortcut } from "../../parts/focus.ts";
import { Icon, IconButton } from "../../parts/icon.tsx";
import { go, linkTo } from "../../state/route.ts";
import { countOf, neighborsOf, type OpenCall } from "./state.ts";
import { words } from "./words.ts";

interface Props {
  readonly thread: string;
  readonly calls: readonly ThreadCall[];
  readonly open: OpenCall | null;
  /** The call in the URL. It may still be loading while another call is open. */
  readonly target: CallRef | null;
  readonly onClose: () => void;
}

export function Head({ thread, calls, open, target, onClose }: Props) {
  return (
    <header class="inspector-head">
      <div class="inspector-bar">
        <Title text={words.value.title} />
        {target && <Steps thread={thread} calls={calls} place={target} />}
        <IconButton icon="close" label={words.value.close} onClick={onClose} />
      </div>
      {open && <About thread={thread} calls={calls} open={open} />}
    </header>
  );
}

/** Heading that takes the focus when the inspector opens, so that keyboard users continue from here. */
export function Title({ text }: { text: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {text}
    </h1>
  );
}

function Steps({ thread, calls, place }: { thread: string; calls: readonly ThreadCall[]; place: CallRef }) {
  const { previous, next } = neighborsOf(calls, place);
  const show = (call: ThreadCall | null) => {
    if (call) go({ view: "call", thread, run: call.run, n: call.n });
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "[" && isShortcut(event)) show(previous);
      if (event.key === "]" && isShortcut(event)) show(next);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [previous, next]);
  return (
    <span class="steps">
      <IconButton
        icon="chevron"
        class="back"
        label={`${words.value.previous} ([)`}
        disabled={!previous}
        onClick={() => show(previous)}
      />
      <IconButton icon="chevron" label={`${words.value.next} (])`} disabled={!next} onClick={() => show(next)} />
    </span>
  );
}

function About({ thread, calls, open }: Pick<Props, "thread" | "calls"> & { open: OpenCall }) {
  const text = words.value;
  const { place, call } = open;
  const link = linkTo({ view: "call", thread, ...place });
  const exportJson = () => {
    const json = JSON.stringify({ ...call, run: place.run, thread }, null, 2);
    saveFile(`recto-call-${place.run}-${place.n}.json`, new Blob([json], { type: "application/json" }));
  };
  return (
    <div class="inspector-about">
      <p aria-live="polite">
        <strong>{text.place(formatNumber(place.n), formatNumber(countOf(calls, place.run)))}</strong>
        <span class="badge">{text.purposes[call.purpose] ?? call.purpose}</span>
        <code>{call.model}</code>
      </p>
      <p class="inspector-tools">
        <CopyButton label={text.copyLink} text={() => new URL(link, location.href).href} />
        <button type="button" class="quiet" onClick={exportJson}>
          <Icon name="download" />
          {text.exportJson}
        </button>
        <a class="button quiet" href={linkTo({ view: "preview", thread })}>
          <Icon name="eye" />
          {text.preview}
        </a>
      </p>
    </div>
  );
}
