/** Original messages of the thread, for parts that were folded, cut or left out. */

import type { Part } from "../../../api/calls.ts";
import type { Message } from "../../../conversation/messages.ts";

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
    case "user": {
      const files = message.files.map((file) => `[${file.id ? `${file.name}, ${file.id}` : file.name}]`);
      return [{ id: message.id, role: "user", text: [message.text, ...files].join("\n").trim() }];
    }
    case "assistant": {
      const calls = message.calls.map((call) => `${call.name}(${call.arguments})`);
      const results = message.calls.flatMap(({ resultId, result }): Original[] =>
        resultId === null || result === null ? [] : [{ id: resultId, role: "tool", text: result }],
      );
      return [{ id: message.id, role: "assistant", text: [message.text, ...calls].join("\n").trim() }, ...results];
    }
    default:
      return [];
  }
}
