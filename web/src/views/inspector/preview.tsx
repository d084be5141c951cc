/** What would be sent now: the page of the words in the box, as a call's is shown. Nothing is sent, nothing stored. */

import { useComputed } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { userRow } from "../../conversation/actions.ts";
import { formatBytes, formatNumber } from "../../language/language.ts";
import { IconButton } from "../../parts/icon_button.tsx";
import { findAgent, newThreadAgent } from "../../state/agents.ts";
import { current } from "../../state/current.ts";
import { draftOf, type Draft } from "../composer/draft.ts";
import { words } from "./changes/change_words.ts";
import { CompositionBar } from "./parts/composition_bar.tsx";
import { Title } from "./head.tsx";
import "./inspector.css";
import { beginning, originalsOf } from "./parts/originals.ts";
import { PartList } from "./parts/part_list.tsx";
import { notesInWords } from "./preview_notes.ts";
import { RawRequest } from "./request/request.tsx";
import { Previewing, type OpenPreview } from "./state.ts";
import { words as common } from "./words.ts";

/** While somebody writes, the page is asked for when they pause. */
const PAUSE_MS = 500;

export function PreviewPage({ thread, onClose }: { thread: string; onClose: () => void }) {
  const previewing = useMemo(() => new Previewing(thread), [thread]);
  const draft = draftOf(current.value);
  const body = useComputed(() => previewBody(draftOf(current.value)));
  const updated = current.value.details.value?.updated;
  useEffect(() => {
    const timer = setTimeout(() => void previewing.show(body.value), previewing.open.value ? PAUSE_MS : 0);
    return () => clearTimeout(timer);
  }, [previewing, body.value, updated, current.value.isRunning.value]);
  const shown = previewing.open.value;
  return (
    <div class="inspector" aria-busy={previewing.isLoading.value}>
      <header class="inspector-head">
        <div class="inspector-bar">
          <Title text={common.value.previewNow} />
          <IconButton icon="retry" label={words.value.refresh} onClick={() => void previewing.show(body.value)} />
          <IconButton icon="close" label={common.value.close} onClick={onClose} />
        </div>
        <About draft={draft.text.value} />
      </header>
      <div class="tab-panel">
        {previewing.problem.value && <p class="problem">{previewing.problem.value}</p>}
        {!shown && previewing.isLoading.value && <p class="soft">{common.value.loading}</p>}
        {shown && <Opened open={shown} />}
      </div>
    </div>
  );
}

function About({ draft }: { draft: string }) {
  const text = words.value;
  return (
    <div class="inspector-about">
      <p class="soft small">{text.previewAbout}</p>
      {draft.trim() ? (
        <p>{text.yourWords(beginning(draft))}</p>
      ) : (
        <p class="soft">{text.noWords}</p>
      )}
    </div>
  );
}

function Opened({ open: { preview, bytes } }: { open: OpenPreview }) {
  const originals = useComputed(() => originalsOf(current.value.messages.value));
  const text = words.value;
  const { parts } = preview.manifest;
  return (
    <>
      <section class="preview-next">
        <h2>{text.next}</h2>
        <p>{text.nexts[preview.next]}</p>
        {notesInWords(preview.notes).map((note) => (
          <p key={note} class="badge warning">
            {note}
          </p>
        ))}
        <p class="soft small">
          <code>{preview.model}</code> · {preview.agent} · {common.value.tokens(formatNumber(preview.tokens))} ·{" "}
          {formatBytes(preview.bytes)}
        </p>
      </section>
      <CompositionBar parts={parts} />
      <PartList parts={parts} sources={{ bytes, originals }} />
      <RawRequest bytes={bytes} />
    </>
  );
}

/** The body of a run that would say what is in the box; where that is empty, of the thread as it stands. */
function previewBody(draft: Draft): unknown {
  const agent = findAgent(current.value.details.value?.agent) ?? newThreadAgent.value;
  const files = draft.uploads.ready.value;
  const said = { id: "preview", text: draft.text.value.trim(), files };
  return {
    messages: draft.isEmpty.value ? [] : [userRow(said)],
    tools: agent?.forms ?? [],
    forwardedProps: {
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      ...(agent ? { agent: agent.name } : {}),
      ...(draft.leavesSkill.value ? { skill: "core" } : {}),
    },
  };
}
