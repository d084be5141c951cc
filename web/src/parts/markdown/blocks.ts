/**
 * Markdown as a list of blocks. Text that grows is read again from its last block only: what stands before cannot
 * change any more, so it is neither read nor drawn twice.
 */

import { Lexer, type Token } from "marked";

export interface Blocks {
  readonly text: string;
  readonly tokens: readonly Token[];
}

export function readBlocks(text: string): Blocks {
  return { text, tokens: new Lexer().lex(text) };
}

/** The blocks of a text that begins as the one before did. Links that are defined later are found once it is whole. */
export function extendBlocks(before: Blocks | null, text: string): Blocks {
  if (!before || !text.startsWith(before.text)) return readBlocks(text);
  if (text.length === before.text.length) return before;
  // A list or a paragraph goes on behind the empty lines that seemed to end it.
  const last = before.tokens.findLastIndex((token) => token.type !== "space");
  const kept = before.tokens.slice(0, Math.max(last, 0));
  const start = kept.reduce((length, token) => length + token.raw.length, 0);
  // Characters that the lexer normalises, such as tabs and line ends, are counted otherwise in `raw`.
  if (!before.text.startsWith(kept.map((token) => token.raw).join(""))) return readBlocks(text);
  return { text, tokens: [...kept, ...new Lexer().lex(text.slice(start))] };
}
