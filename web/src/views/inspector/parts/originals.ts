/** What was said before anything was folded, cut or left out: the messages of the thread by the ids parts name. */

import type { Part } from "../../../api/calls.ts";
import type { Message, ToolCall } from "../../../conversation/messages.ts";

export interface Original {
  readonly id: string;
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
}

/** In the order they were said; results stand behind the words of their calls. */
export type Originals = ReadonlyMap<string, Original>;

export function originalsOf(messages: readonly Message[]): Originals {
  const all = messages.flatMap(originals);
  return new Map(all.map((original) => [original.id, original]));
}

/** What a part stands for: a message, or all from one to another; nothing where it is not in view any more. */
export function originalOf(part: Pick<Part, "source" | "upto">, known: Originals): readonly Original[] {
  const first = known.get(part.source);
  if (part.upto === undefined) return first ? [first] : [];
  const ids = [...known.keys()];
  const [from, to] = [ids.indexOf(part.source), ids.indexOf(part.upto)];
  if (from < 0 || to < from) return first ? [first] : [];
  return [...known.values()].slice(from, to + 1);
}

/** How an original begins, in one line. */
export function beginning(text: string, most = 60): string {
  const line = text.replace(/\s+/g, " ").trim();
  const signs = [...line.slice(0, 2 * most + 2)];
  return signs.length > most ? `${signs.slice(0, most).join("")}…` : line;
}

function originals(message: Message): Original[] {
  switch (message.role) {
    case "user":
      return [{ id: message.id, role: "user", text: [message.text, ...message.files.map(fileLine)].join("\n").trim() }];
    case "assistant":
      return [
        { id: message.id, role: "assistant", text: [message.text, ...message.calls.map(callLine)].join("\n").trim() },
        ...message.calls.flatMap(resultOf),
      ];
    default:
      return [];
  }
}

function fileLine(file: { readonly name: string; readonly id: string | null }): string {
  return `[${file.id ? `${file.name}, ${file.id}` : file.name}]`;
}

function callLine(call: ToolCall): string {
  return `${call.name}(${call.arguments})`;
}

function resultOf(call: ToolCall): Original[] {
  return call.resultId === null || call.result === null ? [] : [{ id: call.resultId, role: "tool", text: call.result }];
}
