/** Original messages of the thread, for parts that were folded, cut or left out. */

import type { Part } from "../../../api/calls.ts";
import type { Message, ToolCall } from "../../../conversation/messages.ts";

export interface Original {
  readonly id: string;
  readonly role: "user" | "assistant" | "tool";
  readonly text: string;
}

/** Originals by id in conversation order. Results follow their calls. */
export type Originals = ReadonlyMap<string, Original>;

export function originalsOf(messages: readonly Message[]): Originals {
  return new Map(messages.flatMap(originals).map((original) => [original.id, original]));
}

/** Return the message of a part, or a range of messages. The result is empty if they left the view. */
export function originalOf(part: Pick<Part, "source" | "upto">, all: Originals): readonly Original[] {
  const first = all.get(part.source);
  if (part.upto === undefined) return first ? [first] : [];
  const ids = [...all.keys()];
  const [from, to] = [ids.indexOf(part.source), ids.indexOf(part.upto)];
  if (from < 0 || to < from) return first ? [first] : [];
  return [...all.values()].slice(from, to + 1);
}

/** Return the start of a text on one line. */
export function excerpt(text: string, limit = 60): string {
  const line = text.replace(/\s+/g, " ").trim();
  const characters = [...line.slice(0, 2 * limit + 2)];
  return characters.length > limit ? `${characters.slice(0, limit).join("")}…` : line;
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
