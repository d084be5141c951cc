/** What skills keep of a user, each with a way to have it forgotten. */

import { findSkill } from "../../state/agents.ts";
import { notify } from "../../state/notices.ts";
import type { Json, JsonObject } from "../forms/json.ts";
import type { ProfileState } from "./profile_state.ts";
import { words } from "./words.ts";

export function SkillsSection({ state }: { state: ProfileState }) {
  const text = words.value;
  const kept = Object.entries((state.profile.value?.skillData ?? {}) as JsonObject);
  return (
    <section class="profile-section">
      <h2>{text.skills}</h2>
      <p class="soft small">{kept.length ? text.skillsAbout : text.noSkills}</p>
      {kept.map(([name, data]) => {
        const title = findSkill(state.agent.value, name)?.title || name;
        return (
          <details key={name} class="profile-skill">
            <summary>{title}</summary>
            <pre class="profile-data" tabIndex={0}>
              {JSON.stringify(data, null, 2)}
            </pre>
            <button type="button" class="danger" disabled={state.isBusy.value} onClick={() => void forget(state, name, title, data)}>
              {text.forget(title)}
            </button>
          </details>
        );
      })}
    </section>
  );
}

async function forget(state: ProfileState, name: string, title: string, data: Json): Promise<void> {
  if (!(await state.change({ skill_data: { [name]: null } }))) return;
  notify(words.value.forgotten(title), {
    label: words.value.undo,
    act: () => void state.change({ skill_data: { [name]: data } }),
  });
}
