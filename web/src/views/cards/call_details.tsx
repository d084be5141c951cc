/** Arguments and result of a call. Approvals show the arguments, too. */

import { useSignal } from "@preact/signals";

import { formatNumber } from "../../language/language.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../forms/json.ts";
import { type DiffLine, diffLines, parseUnifiedDiff } from "./diff.ts";
import "./tool_card.css";
import { words } from "./words.ts";

const MAX_LENGTH = 2_000;

export function CallArguments({ text }: { text: string }) {
  const args = readArguments(text);
  switch (args.kind) {
    case "none":
      return <p class="soft small">{words.value.noArguments}</p>;
    case "edit":
      return (
        <div class="call-edit">
          <code class="call-path">{args.path}</code>
          {args.changes.map((lines, place) => (
            <Diff key={place} lines={lines} />
          ))}
        </div>
      );
    case "command":
      return (
        <>
          <pre class="call-text call-command" tabIndex={0}>
            <code>{args.command}</code>
          </pre>
          {args.rest && <LongText text={args.rest} />}
        </>
      );
    case "json":
    case "text":
      return <LongText text={args.text} />;
  }
}

export function CallResult({ text }: { text: string }) {
  const unified = parseUnifiedDiff(text);
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
          {(sign === "+" || sign === "-") && <span class="visually-hidden">{names[sign]}: </span>}
          {text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

const CLASSES = { "+": "added", "-": "removed", " ": "same", "@": "place" } as const;

/** Text that is cut until the user expands it. */
function LongText({ text }: { text: string }) {
  const isExpanded = useSignal(false);
  const left = text.length - MAX_LENGTH;
  const isCut = left > MAX_LENGTH / 10;
  return (
    <>
      <pre class="call-text" tabIndex={0}>
        {isCut && !isExpanded.value ? `${text.slice(0, MAX_LENGTH)}…` : text}
      </pre>
      {isCut && (
        <button
          type="button"
          class="plain small call-all"
          aria-expanded={isExpanded.value}
          onClick={() => {
            isExpanded.value = !isExpanded.value;
          }}
        >
          {isExpanded.value ? words.value.showLess : words.value.showAll(formatNumber(left))}
        </button>
      )}
    </>
  );
}

type ReadArguments =
  | { readonly kind: "none" }
  | { readonly kind: "edit"; readonly path: string; readonly changes: readonly (readonly DiffLine[])[] }
  | { readonly kind: "command"; readonly command: string; readonly rest: string | null }
  | { readonly kind: "json"; readonly text: string }
  /** Incomplete or invalid JSON. */
  | { readonly kind: "text"; readonly text: string };

export function readArguments(text: string): ReadArguments {
  if (text.trim() === "") return { kind: "none" };
  const args = parseJson(text);
  if (args === undefined) return { kind: "text", text };
  if (!isObject(args)) return { kind: "json", text: pretty(args) };
  return readEdit(args) ?? readCommand(args) ?? (Object.keys(args).length ? { kind: "json", text: pretty(args) } : { kind: "none" });
}

/** Read arguments of the form that filesystem-edit and filesystem-create take. */
function readEdit(args: JsonObject): ReadArguments | null {
  const path = args["filePath"];
  if (typeof path !== "string") return null;
  if (typeof args["content"] === "string") return { kind: "edit", path, changes: [diffLines("", args["content"])] };
  const edits: readonly Json[] = Array.isArray(args["edits"]) && args["edits"].length ? args["edits"] : [args];
  const changes = edits.map(readChange);
  return changes.every((change) => change !== null) ? { kind: "edit", path, changes } : null;
}

function readChange(edit: Json): readonly DiffLine[] | null {
  if (!isObject(edit)) return null;
  const { searchContent, replaceContent } = edit;
  if (typeof searchContent !== "string" || typeof replaceContent !== "string") return null;
  return diffLines(searchContent, replaceContent);
}

function readCommand(args: JsonObject): ReadArguments | null {
  const { command, ...rest } = args;
  if (typeof command !== "string") return null;
  return { kind: "command", command, rest: Object.keys(rest).length ? pretty(rest) : null };
}

/** Indent JSON and drop the part that the card shows. Return other text unchanged. */
export function prettyText(text: string): string {
  const value = parseJson(text);
  if (typeof value !== "object" || value === null) return text;
  if (!isObject(value)) return pretty(value);
  const { ui_hints: _, ...rest } = value;
  return pretty(rest);
}

function pretty(value: Json): string {
  return JSON.stringify(value, null, 2);
}
