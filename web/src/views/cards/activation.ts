/** Whether a call took up a skill or left it, and what that skill is called. */

import type { Agent } from "../../api/routes.ts";
import type { ToolCall } from "../../conversation/messages.ts";
import { isObject, parseJson } from "../forms/json.ts";

const NONE = "core";

/** The skill that is on after the call, null where it was left; undefined where the call is nothing of the kind. */
export function activatedBy(call: ToolCall): string | null | undefined {
  if (call.name !== "use_skill" || call.result === null) return undefined;
  const result = parseJson(call.result);
  if (!isObject(result) || (result["status"] !== "activated" && result["status"] !== "need_info")) return undefined;
  const skill = result["skill"];
  if (typeof skill !== "string") return undefined;
  return skill === NONE ? null : skill;
}

/** The skill's title in a language: by the agent itself, or by what it is in that language. */
export function titleOf(skill: string, agent: Agent | null, agents: readonly Agent[], locale: string): string {
  const family = agent?.variantOf ?? agent?.name;
  const variant = agents.find(
    (one) => family !== undefined && (one.variantOf ?? one.name) === family && one.locale.startsWith(locale),
  );
  const known = [variant, agent].flatMap((one) => one?.skills.filter((found) => found.name === skill) ?? []);
  return known[0]?.title || skill;
}
