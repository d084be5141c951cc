/** Tool call: an expandable line, and its card below. The activation of a skill is a badge. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { Agent } from "../../api/routes.ts";
import type { CallState, ToolCall } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { formatSeconds, locale } from "../../language/language.ts";
import { Icon, type IconName } from "../../parts/icon.tsx";
import { agents } from "../../state/agents.ts";
import { currentThread } from "../../state/current_thread.ts";
import { sendMessage } from "../chat/message_actions.ts";
import { isObject, parseJson } from "../forms/json.ts";
import { CallArguments, CallResult } from "./call_details.tsx";
import "./tool_card.css";
import { UiCard } from "./ui_card.tsx";
import { words } from "./words.ts";

interface Props {
  readonly call: ToolCall;
  readonly agent: Agent | null;
}

export function ToolCard({ call, agent }: Props) {
  const skill = activatedSkill(call);
  return (
    <div class="tool-card">
      {skill === undefined ? <CallLine call={call} /> : <Activation skill={skill} agent={agent} />}
      {call.ui && (
        <UiCard schema={call.ui} onMessage={(text) => void sendMessage(currentThread.value, agent, { text, files: [] })} />
      )}
    </div>
  );
}

function Activation({ skill, agent }: { skill: string | null; agent: Agent | null }) {
  return (
    <p class={`badge activation ${skill === null ? "left" : "success"}`} role="status">
      {skill === null
        ? words.value.deactivated
        : words.value.activated(skillTitle(skill, agent, agents.value, locale.value))}
    </p>
  );
}

const ICONS: Readonly<Record<Exclude<DisplayState, "writing" | "running">, IconName>> = {
  done: "check",
  failed: "warning",
  waiting: "clock",
  open: "tool",
};

function CallLine({ call }: { call: ToolCall }) {
  const state = callState(call, currentThread.value);
  const isBusy = state === "writing" || state === "running";
  const text = words.value;
  return (
    <details class={`call ${state}`}>
      <summary>
        {isBusy ? <span class="spinner" aria-hidden="true" /> : <Icon name={ICONS[state]} />}
        <code class="call-name">{call.name}</code>
        <span class="call-state">{text.states[state]}</span>
        {isBusy && <LiveProgress call={call} />}
        {call.started !== null && (isBusy || call.ended !== null) && (
          <Elapsed started={call.started} ended={call.ended} />
        )}
      </summary>
      <div class="call-details">
        <p class="call-part">{text.arguments}</p>
        <CallArguments text={call.arguments} />
        <p class="call-part">{state === "failed" ? text.error : text.result}</p>
        {call.result === null ? (
          <p class="soft small">{text.noResult}</p>
        ) : (
          <div class={state === "failed" ? "call-error" : ""}>
            <CallResult text={call.result} />
          </div>
        )}
      </div>
    </details>
  );
}

/** Progress and the last line of output. */
function LiveProgress({ call }: { call: ToolCall }) {
  const { progress } = call;
  if (!progress || progress.status === "ended") return null;
  const count = progress.total ? `${progress.done} / ${progress.total}` : progress.done ? String(progress.done) : "";
  const newest = progress.text?.trim().split("\n").at(-1);
  return (
    <span class="call-live soft">
      {progress.label} {count} {count && progress.unit} {newest && <code>{newest}</code>}
    </span>
  );
}

/** Skill name that deactivates the active skill. */
const NO_SKILL = "core";

/** Return the skill that the call activated, null if it deactivated one, and undefined for other calls. */
export function activatedSkill(call: ToolCall): string | null | undefined {
  if (call.name !== "use_skill" || call.result === null) return undefined;
  const result = parseJson(call.result);
  if (!isObject(result) || (result["status"] !== "activated" && result["status"] !== "need_info")) return undefined;
  const skill = result["skill"];
  if (typeof skill !== "string") return undefined;
  return skill === NO_SKILL ? null : skill;
}

/** Return the title of a skill in a language, from the agent's variant in that language if there is one. */
export function skillTitle(skill: string, agent: Agent | null, agents: readonly Agent[], locale: string): string {
  const family = agent?.variantOf ?? agent?.name;
  const variant = agents.find(
    (one) => family !== undefined && (one.variantOf ?? one.name) === family && one.locale.startsWith(locale),
  );
  const matches = [variant, agent].flatMap((one) => one?.skills.filter((other) => other.name === skill) ?? []);
  return matches[0]?.title || skill;
}

/** An `open` call has no result, no run that works on it, and no pending question. */
type DisplayState = CallState | "open";

function callState(call: ToolCall, thread: OpenThread): DisplayState {
  if (call.state === "done" || call.state === "failed") return call.state;
  const pendingIds = [
    ...(thread.details.value?.pendingCalls ?? []).map((pending) => pending.id),
    ...(thread.details.value?.interrupts ?? []).map((interrupt) => interrupt.toolCallId),
  ];
  if (!thread.isRunning.value) return pendingIds.includes(call.id) ? "waiting" : "open";
  return call.state;
}

const TICK_MS = 1_000;

function Elapsed({ started, ended }: { started: number; ended: number | null }) {
  const now = useSignal(Date.now());
  useEffect(() => {
    if (ended !== null) return;
    const timer = setInterval(() => {
      now.value = Date.now();
    }, TICK_MS);
    return () => clearInterval(timer);
  }, [ended]);
  const elapsed = Math.max(0, (ended ?? now.value) - started);
  const text = ended === null ? `${Math.floor(elapsed / 1000)} s` : formatSeconds(elapsed);
  return <span class="call-time soft">{text}</span>;
}
