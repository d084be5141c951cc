/** The form of a call that waits for one: by the schema of its tool, filled with what the model knows already. */

import type { Agent } from "../../api/routes.ts";
import { birthKnown, birthSchema, calendarIn } from "../forms/birth_schema.ts";
import { FormState } from "../forms/form_state.ts";
import { isObject, parseJson, type JsonObject } from "../forms/json.ts";
import { readable, readSchema } from "../forms/read_schema.ts";
import type { PendingCall } from "./waiting_state.ts";
import { BIRTH } from "./words.ts";

export type FormShape = Agent["forms"][number];

const BIRTH_FORM = "collect_birth_info";

export interface Asked {
  readonly title: string;
  readonly about: string;
  readonly form: FormState;
}

export function formOf(call: PendingCall, shape: FormShape, locale: string): Asked {
  const given = parseJson(call.arguments);
  const known = isObject(given) ? given : {};
  const schema = shape.parameters as JsonObject;
  if (call.name !== BIRTH_FORM) {
    const root = readSchema(schema);
    const title = root.title || readable(call.name);
    return { title, about: shape.description, form: new FormState(() => root, known) };
  }
  const birth = birthKnown(known);
  const form = new FormState(
    (draft) => {
      const calendar = calendarIn(draft["calendar"]);
      return readSchema(birthSchema(schema, { locale, known: birth, calendar, isAsked: true }));
    },
    birth,
  );
  return { ...BIRTH[locale.startsWith("zh") ? "zh" : "en"], form };
}

/** The JSON of what a person would rather not say, as the tool takes it. */
export function declined(shape: FormShape, why: string): string {
  const properties = (shape.parameters as JsonObject)["properties"];
  const canCancel = isObject(properties) && "cancelled" in properties;
  return JSON.stringify(canCancel ? { cancelled: true } : { error: why });
}
