/** Preview of the next request with the current draft. Nothing is sent or stored. */

import { useComputed } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { userRow } from "../../conversation/actions.ts";
import { formatBytes, formatNumber } from "../../language/language.ts";
import { IconButton } from "../../parts/icon.tsx";
import { findAgent, newThreadAgent } from "../../state/agents.ts";
import { currentThread } from "../../state/current_thread.ts";
import { type Draft, draftOf } from "../composer/draft.ts";
import { words } from "./change_words.ts";
import { Title } from "./head.tsx";
import "./inspector.css";
import { CompositionBar } from "./parts/composition.tsx";
import { excerpt, originalsOf } from "./parts/originals.ts";
import { PartList } from "./parts/part_list.tsx";
import { RawRequest } from "./request.tsx";
import { type OpenPreview, PreviewState } from "./state.ts";
import { words as common } from "./words.ts";

/** Pause in typing before the preview refreshes. */
const PAUSE_MS = 500;

export function PreviewPage({ thread, onClose }: { thread: string; onClose: () => void }) {
  const previewing = useMemo(() => new PreviewState(thread), [thread]);
  const draft = draftOf(currentThread.value);
  const body = useComputed(() => previewBody(draftOf(currentThread.value)));
  const updated = currentThread.value.details.value?.updated;
  useEffect(() => {
    const timer = setTimeout(() => void previewing.show(body.value), previewing.open.value ? PAUSE_MS : 0);
    return () => clearTimeout(timer);
  }, [previewing, body.value, updated, currentThread.value.isRunning.value]);
  const openPreview = previewing.open.value;
  return (
    <div class="inspector" aria-busy={previewing.isLoading.value}>
      <header class="inspector-head">
        <div class="inspector-bar">
          <Title text={common.value.preview} />
          <IconButton icon="retry" label={words.value.refresh} onClick={() => void previewing.show(body.value)} />
          <IconButton icon="close" label={common.value.close} onClick={onClose} />
        </div>
        <About draft={draft.text.value} />
      </header>
      <div class="tab-panel">
        {previewing.problem.value && <p class="problem">{previewing.problem.value}</p>}
        {!openPreview && previewing.isLoading.value && <p class="soft">{common.value.loading}</p>}
        {openPreview && <PreviewView open={openPreview} />}
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
        <p>{text.draft(excerpt(draft))}</p>
      ) : (
        <p class="soft">{text.noDraft}</p>
      )}
    </div>
  );
}

function PreviewView({ open: { preview, bytes } }: { open: OpenPreview }) {
  const originals = useComputed(() => originalsOf(currentThread.value.messages.value));
  const text = words.value;
  const { parts } = preview.manifest;
  return (
    <>
      <section class="preview-next">
        <h2>{text.next}</h2>
        <p>{text.nexts[preview.next]}</p>
        {noteTexts(preview.notes).map((note) => (
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

/** Return the request body for the draft, or for the thread as it stands if the draft is empty. */
function previewBody(draft: Draft): unknown {
  const agent = findAgent(currentThread.value.details.value?.agent) ?? newThreadAgent.value;
  const files = draft.uploads.ready.value;
  const message = { id: "preview", text: draft.text.value.trim(), files };
  return {
    messages: draft.isEmpty.value ? [] : [userRow(message)],
    tools: agent?.forms ?? [],
    forwardedProps: {
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      ...(agent ? { agent: agent.name } : {}),
      ...(draft.leavesSkill.value ? { skill: "core" } : {}),
    },
  };
}

const NEXT_STEP_NOTES = [/^The page has no room/, /^A run would /, /^There is nothing to answer/];

export function noteTexts(notes: readonly string[]): string[] {
  return notes.filter((note) => !NEXT_STEP_NOTES.some((pattern) => pattern.test(note))).map(noteText);
}

function noteText(note: string): string {
  if (note.startsWith("A run is at work")) return words.value.inProgress;
  const tool = /^The tool (\S+) would act/.exec(note)?.[1];
  return tool ? words.value.acts(tool) : note;
}
