/** What a form asks for, read from a JSON Schema: each field knows how it is drawn and what it takes. */

import type { Json } from "./json.ts";

export type TextFormat = "text" | "long" | "date" | "time" | "email" | "uri";

export interface Common {
  readonly name: string;
  readonly title: string;
  readonly description: string | null;
  readonly example: string | null;
  readonly isRequired: boolean;
  /** What it is where nobody has said anything. */
  readonly initial: Json | undefined;
  /** Seldom needed: shown when it is asked for. */
  readonly isMore: boolean;
}

export interface TextField extends Common {
  readonly kind: "text";
  readonly format: TextFormat;
  readonly minLength: number | null;
  readonly maxLength: number | null;
  readonly pattern: string | null;
  /** An empty text is an answer. */
  readonly takesEmpty: boolean;
  /** Objects are taken as well, written as JSON. */
  readonly takesObjects: boolean;
  /** Words of a box that says that this is not known; null: there is none. */
  readonly unknown: string | null;
}

export interface NumberField extends Common {
  readonly kind: "number";
  readonly isWhole: boolean;
  readonly minimum: number | null;
  readonly maximum: number | null;
  readonly above: number | null;
  readonly below: number | null;
}

export interface Option {
  readonly value: Json;
  readonly label: string;
}

export interface ChoiceField extends Common {
  readonly kind: "choice";
  readonly options: readonly Option[];
}

export interface FlagField extends Common {
  readonly kind: "flag";
}

export interface ChoicesField extends Common {
  readonly kind: "choices";
  readonly options: readonly Option[];
  readonly minItems: number | null;
  readonly maxItems: number | null;
}

export interface ListField extends Common {
  readonly kind: "list";
  readonly item: TextField | NumberField;
  readonly minItems: number | null;
  readonly maxItems: number | null;
}

export interface GroupField extends Common {
  readonly kind: "group";
  readonly fields: readonly Field[];
}

/** Anything else, written as JSON. */
export interface JsonField extends Common {
  readonly kind: "json";
}

export type Field =
  | TextField
  | NumberField
  | ChoiceField
  | FlagField
  | ChoicesField
  | ListField
  | GroupField
  | JsonField;
