/** A call of a tool: one line that opens, and below it the card it came with. Taking up a skill is a badge instead. */

import type { Agent } from "../../api/routes.ts";
import type { ToolCall } from "../../conversation/messages.ts";
import { locale } from "../../language/language.ts";
import { Icon, type IconName } from "../../parts/icon.tsx";
import { agents } from "../../state/agents.ts";
import { current } from "../../state/current.ts";
import { speak } from "../chat/speak.ts";
import { activatedBy, titleOf } from "./activation.ts";
import { CallArguments, CallResult } from "./call_details.tsx";
import { stateOf, type ShownState } from "./call_state.ts";
import { Elapsed } from "./elapsed.tsx";
import "./tool_card.css";
import { UiCard } from "./ui_card.tsx";
import { words } from "./words.ts";

interface Props {
  readonly call: ToolCall;
  readonly agent: Agent | null;
}

export function ToolCard({ call, agent }: Props) {
  const skill = activatedBy(call);
  return (
    <div class="tool-card">
      {skill === undefined ? <CallLine call={call} /> : <Activation skill={skill} agent={agent} />}
      {call.ui && (
        <UiCard schema={call.ui} onSay={(text) => void speak(current.value, agent, { text, files: [] })} />
      )}
    </div>
  );
}

function Activation({ skill, agent }: { skill: string | null; agent: Agent | null }) {
  return (
    <p class={`badge activation ${skill === null ? "left" : "success"}`} role="status">
      {skill === null
        ? words.value.left
        : words.value.activated(titleOf(skill, agent, agents.value, locale.value))}
    </p>
  );
}

const ICONS: Readonly<Record<Exclude<ShownState, "writing" | "running">, IconName>> = {
  done: "check",
  failed: "warning",
  waiting: "clock",
  open: "tool",
};

function CallLine({ call }: { call: ToolCall }) {
  const state = stateOf(call, current.value);
  const isBusy = state === "writing" || state === "running";
  const text = words.value;
  return (
    <details class={`call ${state}`}>
      <summary>
        {isBusy ? <span class="spinner" aria-hidden="true" /> : <Icon name={ICONS[state]} />}
        <code class="call-name">{call.name}</code>
        <span class="call-state">{text.states[state]}</span>
        {isBusy && <Live call={call} />}
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

/** How far it is, and the newest that it said. */
function Live({ call }: { call: ToolCall }) {
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
