/** A thread in which nothing was said: who answers, what they are for, and things to begin with. */

import type { Agent } from "../../api/routes.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { Icon } from "../../parts/icon.tsx";
import { chosenAgent, shownAgents } from "../../state/agents.ts";
import "./empty.css";
import { words } from "./empty_words.ts";
import { speak } from "./speak.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

export function EmptyThread({ thread, agent }: Props) {
  const text = words.value;
  return (
    <div class="empty-scroll">
      <div class="empty">
        <h2>{text.hello}</h2>
        <p class="soft">{text.about}</p>
        {thread.isNew.value && shownAgents.value.length > 1 && <AgentPicker agent={agent} />}
        {agent && agent.starters.length > 0 && <Starters thread={thread} agent={agent} />}
        <ul class="empty-hints soft small">
          {agent?.fileInput && (
            <li>
              <Icon name="attach" /> {text.filesHint}
            </li>
          )}
          <li>
            <Icon name="eye" /> {text.inspectHint}
          </li>
          <li>
            <Icon name="keyboard" /> {text.keysHint}
          </li>
        </ul>
      </div>
    </div>
  );
}

function AgentPicker({ agent }: { agent: Agent | null }) {
  return (
    <fieldset class="agent-picker">
      <legend>{words.value.pick}</legend>
      {shownAgents.value.map((one) => (
        <label key={one.name} class="agent-choice">
          <input
            type="radio"
            name="agent"
            value={one.name}
            checked={one.name === agent?.name}
            onChange={() => {
              chosenAgent.value = one.name;
            }}
          />
          <span>
            <strong>{one.name}</strong>
            <span class="soft small">{one.description}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}

function Starters({ thread, agent }: { thread: OpenThread; agent: Agent }) {
  return (
    <section class="starters" aria-label={words.value.starters}>
      <h3 class="soft small">{words.value.starters}</h3>
      {agent.starters.map((starter) => (
        <button key={starter} type="button" onClick={() => void speak(thread, agent, { text: starter, files: [] })}>
          <span>{starter}</span>
          <Icon name="send" />
        </button>
      ))}
    </section>
  );
}
