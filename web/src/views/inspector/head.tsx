/** The bar of the inspector: which call this is, the ones before and behind it, and the way out. */

import { useEffect, useRef } from "preact/hooks";

import type { CallPlace, ThreadCall } from "../../api/calls.ts";
import { formatNumber } from "../../language/language.ts";
import { Icon } from "../../parts/icon.tsx";
import { IconButton } from "../../parts/icon_button.tsx";
import { go, linkTo } from "../../state/route.ts";
import { countOf, neighboursOf } from "./thread/call_order.ts";
import { CopyButton } from "./copy_button.tsx";
import { downloadJson } from "./download.ts";
import type { OpenCall } from "./state.ts";
import { words } from "./words.ts";

interface Props {
  readonly thread: string;
  readonly calls: readonly ThreadCall[];
  readonly open: OpenCall | null;
  /** The call that was asked for: it may be on its way while another is still shown. */
  readonly asked: CallPlace | null;
  readonly onClose: () => void;
}

export function Head({ thread, calls, open, asked, onClose }: Props) {
  return (
    <header class="inspector-head">
      <div class="inspector-bar">
        <Title text={words.value.title} />
        {asked && <Steps thread={thread} calls={calls} place={asked} />}
        <IconButton icon="close" label={words.value.close} onClick={onClose} />
      </div>
      {open && <About thread={thread} calls={calls} open={open} />}
    </header>
  );
}

/** The heading has the focus when the inspector opens: who uses the keyboard goes on from here. */
export function Title({ text }: { text: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <h1 ref={heading} tabIndex={-1}>
      {text}
    </h1>
  );
}

function Steps({ thread, calls, place }: { thread: string; calls: readonly ThreadCall[]; place: CallPlace }) {
  const { previous, next } = neighboursOf(calls, place);
  const show = (call: ThreadCall | null) => {
    if (call) go({ view: "call", thread, run: call.run, n: call.n });
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "[" && isFree(event)) show(previous);
      if (event.key === "]" && isFree(event)) show(next);
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
  return (
    <div class="inspector-about">
      <p aria-live="polite">
        <strong>{text.place(formatNumber(place.n), formatNumber(countOf(calls, place.run)))}</strong>
        <span class="badge">{text.purposes[call.purpose] ?? call.purpose}</span>
        <code>{call.model}</code>
      </p>
      <p class="inspector-tools">
        <CopyButton label={text.copyLink} text={() => new URL(link, location.href).href} />
        <button
          type="button"
          class="quiet"
          onClick={() => downloadJson(`recto-call-${place.run}-${place.n}.json`, { ...call, run: place.run, thread })}
        >
          <Icon name="download" />
          {text.exportJson}
        </button>
        <a class="button quiet" href={linkTo({ view: "preview", thread })}>
          <Icon name="eye" />
          {text.previewNow}
        </a>
      </p>
    </div>
  );
}

function isFree(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false;
  const { target } = event;
  const isWriting =
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
  return !isWriting && !document.querySelector("dialog[open]");
}
