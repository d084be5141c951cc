/** What is kept of a user: to be read, changed, forgotten, and taken along. */

import { useEffect, useMemo } from "preact/hooks";

import { formatTime } from "../../language/language.ts";
import { Icon } from "../../parts/icon.tsx";
import { IconButton } from "../../parts/icon_button.tsx";
import { shownAgents } from "../../state/agents.ts";
import { current } from "../../state/current.ts";
import { linkTo } from "../../state/route.ts";
import { ExportSection } from "./export_section.tsx";
import { KeptFields } from "./kept_fields.tsx";
import "./profile.css";
import { ProfileState } from "./profile_state.ts";
import { SkillsSection } from "./skills_section.tsx";
import { words } from "./words.ts";

export function ProfilePage({ onOpenList }: { onOpenList: () => void }) {
  const state = useMemo(() => new ProfileState(), []);
  useEffect(() => void state.load(), []);
  const agents = shownAgents.value.filter((agent) => agent.profileSchema !== null);
  useEffect(() => {
    const chosen = agents.find((agent) => agent.name === state.agent.value?.name);
    state.showBy(chosen ?? agents[0] ?? null);
  }, [agents.map((agent) => agent.name).join()]);
  return (
    <>
      <Bar onOpenList={onOpenList} />
      <div class="profile-scroll">
        <div class="profile">
          <Head state={state} />
          {state.profile.value && (
            <>
              <KeptFields state={state} agents={agents} />
              <SkillsSection state={state} />
              <ExportSection />
            </>
          )}
        </div>
      </div>
    </>
  );
}

function Bar({ onOpenList }: { onOpenList: () => void }) {
  const text = words.value;
  const thread = current.value;
  return (
    <header class="page-bar">
      <IconButton icon="menu" label={text.list} class="only-narrow" onClick={onOpenList} />
      <h1>{text.title}</h1>
      <a class="button" href={linkTo({ view: "chat", thread: thread.isNew.value ? null : thread.id })}>
        <Icon name="undo" />
        {text.back}
      </a>
    </header>
  );
}

function Head({ state }: { state: ProfileState }) {
  const text = words.value;
  const profile = state.profile.value;
  if (profile === null) {
    return state.problem.value === null ? (
      <p class="soft">{text.loading}</p>
    ) : (
      <div class="problem" role="alert">
        <p>{state.problem.value}</p>
        <button type="button" onClick={() => void state.load()}>
          {text.again}
        </button>
      </div>
    );
  }
  return (
    <div class="profile-head">
      <p>{text.about}</p>
      <p class="soft small">
        {text.tier} <span class="badge">{profile.tier}</span>{" "}
        {profile.updated && <span>{text.updated(formatTime(profile.updated))}</span>}
      </p>
    </div>
  );
}
