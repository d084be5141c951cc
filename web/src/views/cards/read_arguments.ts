/** The arguments of a call as people read them: a change of a file, a command, or what they are. */

import { isObject, parseJson, type Json, type JsonObject } from "../forms/json.ts";
import { diffLines, type DiffLine } from "./diff.ts";

export type ReadArguments =
  | { readonly kind: "none" }
  | { readonly kind: "edit"; readonly path: string; readonly changes: readonly (readonly DiffLine[])[] }
  | { readonly kind: "command"; readonly command: string; readonly rest: string | null }
  | { readonly kind: "json"; readonly text: string }
  /** Not whole yet, or nothing that can be read. */
  | { readonly kind: "text"; readonly text: string };

export function readArguments(text: string): ReadArguments {
  if (text.trim() === "") return { kind: "none" };
  const given = parseJson(text);
  if (given === undefined) return { kind: "text", text };
  if (!isObject(given)) return { kind: "json", text: pretty(given) };
  return readEdit(given) ?? readCommand(given) ?? readOther(given);
}

/** filesystem-edit and filesystem-create, and whatever has arguments like theirs. */
function readEdit(given: JsonObject): ReadArguments | null {
  const path = given["filePath"];
  if (typeof path !== "string") return null;
  if (typeof given["content"] === "string") return { kind: "edit", path, changes: [diffLines("", given["content"])] };
  const edits: readonly Json[] = Array.isArray(given["edits"]) && given["edits"].length ? given["edits"] : [given];
  const changes = edits.map(readChange);
  return changes.every((change) => change !== null) ? { kind: "edit", path, changes } : null;
}

function readChange(edit: Json): readonly DiffLine[] | null {
  if (!isObject(edit)) return null;
  const { searchContent, replaceContent } = edit;
  if (typeof searchContent !== "string" || typeof replaceContent !== "string") return null;
  return diffLines(searchContent, replaceContent);
}

function readCommand(given: JsonObject): ReadArguments | null {
  const { command, ...rest } = given;
  if (typeof command !== "string") return null;
  return { kind: "command", command, rest: Object.keys(rest).length ? pretty(rest) : null };
}

function readOther(given: JsonObject): ReadArguments {
  return Object.keys(given).length ? { kind: "json", text: pretty(given) } : { kind: "none" };
}

/** JSON with blanks, without what is shown as a card; any other text as it is. */
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
