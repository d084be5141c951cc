/** The bytes of a page as text: all of it to be read, or the part of it that a span names. */

import type { Span } from "../../../api/calls.ts";

/** Spans count bytes: text is cut before it is decoded, never after. */
export function textAt(bytes: Uint8Array, [from, to]: Span): string {
  return new TextDecoder().decode(bytes.subarray(from, to));
}

export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]|[^\s"{}[\]:,]+/gs;

/** JSON on lines of its own, sign for sign: numbers and escapes stay as they were written. */
export function pretty(text: string): string {
  const lines: string[] = [];
  let line = "";
  let depth = 0;
  const end = () => {
    if (line) lines.push(line);
    line = "  ".repeat(depth);
  };
  const tokens = text.match(TOKEN) ?? [];
  tokens.forEach((token, at) => {
    const isEmpty = token === CLOSING[tokens[at - 1] ?? ""];
    if (token in CLOSING) depth += 1;
    if (token === "}" || token === "]") {
      depth -= 1;
      if (!isEmpty) end();
    }
    line += token === ":" ? ": " : token;
    const opens = token in CLOSING && tokens[at + 1] !== CLOSING[token];
    if (opens || token === ",") end();
  });
  return [...lines, line].join("\n");
}

const CLOSING: Readonly<Record<string, string>> = { "{": "}", "[": "]" };
const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|(.))/gs;
const PLAIN: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "", f: "\n" };

/** A piece of JSON with its escapes read, so that lines are lines. It is for people: it is no JSON any more. */
export function readable(text: string): string {
  return text.replace(ESCAPE, (_, hex: string | undefined, sign: string | undefined) =>
    hex ? String.fromCharCode(parseInt(hex, 16)) : (PLAIN[sign ?? ""] ?? sign ?? ""),
  );
}
