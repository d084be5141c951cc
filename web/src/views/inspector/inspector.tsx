/** What the model was sent in a call, part by part, and why. */

import { useComputed } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { formatNumber } from "../../language/language.ts";
import { current } from "../../state/current.ts";
import { notifyError } from "../../state/notices.ts";
import { go } from "../../state/route.ts";
import { countOf } from "./thread/call_order.ts";
import { Changes } from "./changes/changes.tsx";
import { CompositionBar } from "./parts/composition_bar.tsx";
import { Figures } from "./request/figures.tsx";
import { Head } from "./head.tsx";
import "./inspector.css";
import { originalsOf } from "./parts/originals.ts";
import { PartList } from "./parts/part_list.tsx";
import { CurlCommand, RawRequest } from "./request/request.tsx";
import { Inspection, tab, type OpenCall } from "./state.ts";
import { Tabs } from "./tabs.tsx";
import { ThreadCalls } from "./thread/thread_calls.tsx";
import { words } from "./words.ts";

interface Props {
  readonly thread: string;
  readonly run: string;
  /** Null: the run's last reply. */
  readonly n: number | null;
  readonly onClose: () => void;
}

export function Inspector({ thread, run, n, onClose }: Props) {
  const inspection = useMemo(() => new Inspection(thread), [thread]);
  const isRunning = current.value.isRunning.value;
  useEffect(() => {
    void open(inspection, run, n);
  }, [inspection, run, n]);
  useEffect(() => {
    if (!isRunning) inspection.refresh().catch(notifyError);
  }, [inspection, isRunning]);
  const shown = inspection.open.value;
  const asked = n === null ? (shown?.place ?? null) : { run, n };
  return (
    <div class="inspector" aria-busy={inspection.isLoading.value}>
      <Head thread={thread} calls={inspection.calls.value} open={shown} asked={asked} onClose={onClose} />
      {shown && <OpenedCall key={`${shown.place.run} ${shown.place.n}`} inspection={inspection} open={shown} />}
      {!shown && <Nothing inspection={inspection} onRetry={() => void open(inspection, run, n)} />}
    </div>
  );
}

/** An address without a number gets that of the call that is shown, so that a link goes on to mean this one. */
async function open(inspection: Inspection, run: string, n: number | null): Promise<void> {
  await inspection.show(run, n);
  const place = inspection.open.value?.place;
  if (n === null && place?.run === run) go({ view: "call", thread: inspection.thread, ...place }, { replace: true });
}

function Nothing({ inspection, onRetry }: { inspection: Inspection; onRetry: () => void }) {
  const text = words.value;
  if (inspection.isLoading.value) return <p class="inspector-empty soft">{text.loading}</p>;
  const problem = inspection.problem.value;
  return (
    <div class="inspector-empty">
      {problem ? <p class="problem">{problem}</p> : <h2>{text.noCalls}</h2>}
      {!problem && <p class="soft">{text.noCallsWhy}</p>}
      <button type="button" onClick={onRetry}>
        {text.tryAgain}
      </button>
    </div>
  );
}

function OpenedCall({ inspection, open: shown }: { inspection: Inspection; open: OpenCall }) {
  const calls = inspection.calls.value;
  const { before } = shown;
  const text = words.value;
  const choose = (name: typeof tab.value) => {
    tab.value = name;
  };
  return (
    <Tabs label={text.views} names={text.tabs} chosen={tab.value} onChoose={choose}>
      {tab.value === "page" && <Page open={shown} />}
      {tab.value === "changes" && (
        <Changes
          open={shown}
          place={before && placeInWords(before.n, countOf(calls, before.run), before.run === shown.place.run)}
        />
      )}
      {tab.value === "request" && (
        <>
          <RawRequest bytes={shown.bytes} />
          <CurlCommand curl={shown.curl} />
        </>
      )}
      {tab.value === "thread" && <ThreadCalls thread={inspection.thread} calls={calls} shown={shown.place} />}
    </Tabs>
  );
}

function placeInWords(n: number, count: number, isSameRun: boolean): string {
  const text = words.value;
  const place = text.place(formatNumber(n), formatNumber(count));
  return isSameRun ? place : text.ofAnswerBefore(place);
}

function Page({ open: { call, bytes } }: { open: OpenCall }) {
  const originals = useComputed(() => originalsOf(current.value.messages.value));
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
