/** Inspector of a model call. */

import { useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";

import { formatNumber } from "../../language/language.ts";
import { currentThread } from "../../state/current_thread.ts";
import { go } from "../../state/route.ts";
import { notifyError } from "../../state/toasts.ts";
import { Changes } from "./changes.tsx";
import { Head } from "./head.tsx";
import "./inspector.css";
import { CompositionBar } from "./parts/composition.tsx";
import { originalsOf } from "./parts/originals.ts";
import { PartList } from "./parts/part_list.tsx";
import { CurlCommand, Figures, RawRequest } from "./request.tsx";
import { countOf, InspectorState, type OpenCall, type Tab, tab } from "./state.ts";
import { ThreadCalls } from "./thread_calls.tsx";
import { words } from "./words.ts";

interface Props {
  readonly thread: string;
  readonly run: string;
  /** Number of the call, or null for the last reply of the run. */
  readonly n: number | null;
  readonly onClose: () => void;
}

export function Inspector({ thread, run, n, onClose }: Props) {
  const inspection = useMemo(() => new InspectorState(thread), [thread]);
  const isRunning = currentThread.value.isRunning.value;
  useEffect(() => {
    void open(inspection, run, n);
  }, [inspection, run, n]);
  useEffect(() => {
    if (!isRunning) inspection.refresh().catch(notifyError);
  }, [inspection, isRunning]);
  const openCall = inspection.open.value;
  const target = n === null ? (openCall?.place ?? null) : { run, n };
  return (
    <div class="inspector" aria-busy={inspection.isLoading.value}>
      <Head thread={thread} calls={inspection.calls.value} open={openCall} target={target} onClose={onClose} />
      {openCall && <OpenCallView key={`${openCall.place.run} ${openCall.place.n}`} inspection={inspection} open={openCall} />}
      {!openCall && <EmptyState inspection={inspection} onRetry={() => void open(inspection, run, n)} />}
    </div>
  );
}

/** Add the number of the call to a URL without one, so that a copied link stays valid. */
async function open(inspection: InspectorState, run: string, n: number | null): Promise<void> {
  await inspection.show(run, n);
  const place = inspection.open.value?.place;
  if (n === null && place?.run === run) go({ view: "call", thread: inspection.thread, ...place }, { replace: true });
}

function EmptyState({ inspection, onRetry }: { inspection: InspectorState; onRetry: () => void }) {
  const text = words.value;
  if (inspection.isLoading.value) return <p class="inspector-empty soft">{text.loading}</p>;
  const problem = inspection.problem.value;
  return (
    <div class="inspector-empty">
      {problem ? <p class="problem">{problem}</p> : <h2>{text.noCalls}</h2>}
      {!problem && <p class="soft">{text.noCallsHelp}</p>}
      <button type="button" onClick={onRetry}>
        {text.tryAgain}
      </button>
    </div>
  );
}

function OpenCallView({ inspection, open: openCall }: { inspection: InspectorState; open: OpenCall }) {
  const calls = inspection.calls.value;
  const { before } = openCall;
  const text = words.value;
  return (
    <Tabs label={text.views} names={text.tabs} selected={tab.value} onSelect={selectTab}>
      {tab.value === "page" && <Page open={openCall} />}
      {tab.value === "changes" && (
        <Changes
          open={openCall}
          place={before && placeText(before.n, countOf(calls, before.run), before.run === openCall.place.run)}
        />
      )}
      {tab.value === "request" && (
        <>
          <RawRequest bytes={openCall.bytes} />
          <CurlCommand curl={openCall.curl} />
        </>
      )}
      {tab.value === "thread" && <ThreadCalls thread={inspection.thread} calls={calls} selected={openCall.place} />}
    </Tabs>
  );
}

function selectTab(name: Tab): void {
  tab.value = name;
}

function placeText(n: number, count: number, isSameRun: boolean): string {
  const text = words.value;
  const place = text.place(formatNumber(n), formatNumber(count));
  return isSameRun ? place : text.earlierAnswer(place);
}

function Page({ open: { call, bytes } }: { open: OpenCall }) {
  const originals = useComputed(() => originalsOf(currentThread.value.messages.value));
  const parts = call.manifest?.parts;
  return (
    <>
      {parts && <CompositionBar parts={parts} />}
      <Figures call={call} />
      {parts && <PartList parts={parts} sources={{ bytes, originals }} />}
      {!parts && <p class="problem">{words.value.noManifest}</p>}
    </>
  );
}

interface TabsProps<Name extends string> {
  readonly label: string;
  readonly names: Readonly<Record<Name, string>>;
  readonly selected: Name;
  readonly onSelect: (name: Name) => void;
  readonly children: ComponentChildren;
}

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

function Tabs<Name extends string>({ label, names, selected, onSelect, children }: TabsProps<Name>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const tabs = Object.keys(names) as Name[];

  function onKey(event: KeyboardEvent): void {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const place = (tabs.indexOf(selected) + step + tabs.length) % tabs.length;
    onSelect(tabs[place] as Name);
    (list.current?.children[place] as HTMLElement | undefined)?.focus();
  }

  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKey}>
        {tabs.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            aria-selected={name === selected}
            aria-controls={`${id}-panel`}
            tabIndex={name === selected ? 0 : -1}
            onClick={() => onSelect(name)}
          >
            {names[name]}
          </button>
        ))}
      </div>
      <div class="tab-panel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${selected}`} tabIndex={0}>
        {children}
      </div>
    </>
  );
}
