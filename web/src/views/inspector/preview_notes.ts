/** What the server notes of a preview, in the language of the page. What would happen first is told by itself. */

import { words } from "./changes/change_words.ts";

const NEXT = [/^The page has no room/, /^A run would /, /^There is nothing to answer/];

export function notesInWords(notes: readonly string[]): string[] {
  return notes.filter((note) => !NEXT.some((known) => known.test(note))).map(inWords);
}

function inWords(note: string): string {
  if (note.startsWith("A run is at work")) return words.value.atWork;
  const tool = /^The tool (\S+) would act/.exec(note)?.[1];
  return tool ? words.value.acts(tool) : note;
}
