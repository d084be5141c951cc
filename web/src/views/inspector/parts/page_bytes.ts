/** Text of a page or of one of its parts. */

import type { Span } from "../../../api/calls.ts";

/** Spans count bytes, so slice before decoding. */
export function textAt(bytes: Uint8Array, [from, to]: Span): string {
  return new TextDecoder().decode(bytes.subarray(from, to));
}

export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]|[^\s"{}[\]:,]+/gs;

/** Format JSON with line breaks. Numbers and escapes stay as in the source. */
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

/** Decode the escapes of a JSON fragment for display. The result is not valid JSON. */
export function readable(text: string): string {
  return text.replace(ESCAPE, (_, hex: string | undefined, sign: string | undefined) =>
    hex ? String.fromCharCode(parseInt(hex, 16)) : (PLAIN[sign ?? ""] ?? sign ?? ""),
  );
}
