/** Fields of a form, as read from a JSON Schema. */

import type { Json } from "./json.ts";

export type TextFormat = "text" | "long" | "date" | "time" | "email" | "uri";

export interface FieldBase {
  readonly name: string;
  readonly title: string;
  readonly description: string | null;
  readonly example: string | null;
  readonly isRequired: boolean;
  /** Default value. */
  readonly initial: Json | undefined;
  /** True for a rarely needed field, which belongs under “More options”. */
  readonly isAdvanced: boolean;
}

export interface TextField extends FieldBase {
  readonly kind: "text";
  readonly format: TextFormat;
  readonly minLength: number | null;
  readonly maxLength: number | null;
  readonly pattern: string | null;
  /** True if an empty text is a valid value. */
  readonly allowsEmpty: boolean;
  /** True if the field also accepts objects, written as JSON. */
  readonly allowsObjects: boolean;
}

export interface NumberField extends FieldBase {
  readonly kind: "number";
  readonly isInteger: boolean;
  readonly minimum: number | null;
  readonly maximum: number | null;
  readonly exclusiveMinimum: number | null;
  readonly exclusiveMaximum: number | null;
}

export interface Option {
  readonly value: Json;
  readonly label: string;
  /** True if the form shows the option only while it is selected. */
  readonly isHidden: boolean;
}

export interface ChoiceField extends FieldBase {
  readonly kind: "choice";
  readonly options: readonly Option[];
}

export interface FlagField extends FieldBase {
  readonly kind: "flag";
}

export interface ChoicesField extends FieldBase {
  readonly kind: "choices";
  readonly options: readonly Option[];
  readonly minItems: number | null;
  readonly maxItems: number | null;
}

export interface ListField extends FieldBase {
  readonly kind: "list";
  readonly item: TextField | NumberField;
  readonly minItems: number | null;
  readonly maxItems: number | null;
}

export interface GroupField extends FieldBase {
  readonly kind: "group";
  readonly fields: readonly Field[];
}

/** Any other schema: the user writes JSON. */
export interface JsonField extends FieldBase {
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
