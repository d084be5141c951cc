/** What a call was given and what came back. Also shown where a person has to agree to it. */

import { useSignal } from "@preact/signals";

import { formatNumber } from "../../language/language.ts";
import { readUnified, type DiffLine } from "./diff.ts";
import { prettyText, readArguments } from "./read_arguments.ts";
import "./tool_card.css";
import { words } from "./words.ts";

const SHOWN = 2_000;

export function CallArguments({ text }: { text: string }) {
  const read = readArguments(text);
  switch (read.kind) {
    case "none":
      return <p class="soft small">{words.value.noArguments}</p>;
    case "edit":
      return (
        <div class="call-edit">
          <code class="call-path">{read.path}</code>
          {read.changes.map((lines, place) => (
            <Diff key={place} lines={lines} />
          ))}
        </div>
      );
    case "command":
      return (
        <>
          <pre class="call-text call-command" tabIndex={0}>
            <code>{read.command}</code>
          </pre>
          {read.rest && <LongText text={read.rest} />}
        </>
      );
    case "json":
    case "text":
      return <LongText text={read.text} />;
  }
}

export function CallResult({ text }: { text: string }) {
  const unified = readUnified(text);
  if (unified) {
    return (
      <>
        {unified.before && <p class="small">{unified.before}</p>}
        <Diff lines={unified.lines} />
      </>
    );
  }
  if (text.trim() === "") return <p class="soft small">{words.value.emptyResult}</p>;
  return <LongText text={prettyText(text)} />;
}

function Diff({ lines }: { lines: readonly DiffLine[] }) {
  const names = { "+": words.value.added, "-": words.value.removed };
  return (
    <pre class="call-text call-diff" tabIndex={0}>
      {lines.map(({ sign, text }, place) => (
        <span key={place} class={`diff-line ${CLASSES[sign]}`}>
          <span aria-hidden="true">{sign === "@" ? " " : sign} </span>
          {(sign === "+" || sign === "-") && <span class="hidden-but-read">{names[sign]}: </span>}
          {text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

const CLASSES = { "+": "added", "-": "removed", " ": "same", "@": "place" } as const;

/** A long one is cut, and shown whole when it is asked for. */
function LongText({ text }: { text: string }) {
  const isWhole = useSignal(false);
  const left = text.length - SHOWN;
  const isCut = left > SHOWN / 10;
  return (
    <>
      <pre class="call-text" tabIndex={0}>
        {isCut && !isWhole.value ? `${text.slice(0, SHOWN)}…` : text}
      </pre>
      {isCut && (
        <button
          type="button"
          class="plain small call-all"
          aria-expanded={isWhole.value}
          onClick={() => {
            isWhole.value = !isWhole.value;
          }}
        >
          {isWhole.value ? words.value.showLess : words.value.showAll(formatNumber(left))}
        </button>
      )}
    </>
  );
}
