/** Page with everything the server stores about the user: view, edit, delete, export. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { send } from "../../api/request.ts";
import type { Agent } from "../../api/routes.ts";
import { bilingual, formatTime } from "../../language/language.ts";
import { saveFile } from "../../parts/files.tsx";
import { Icon } from "../../parts/icon.tsx";
import { PageBar } from "../../parts/page_bar.tsx";
import { findSkill, visibleAgents } from "../../state/agents.ts";
import { notify, notifyError } from "../../state/toasts.ts";
import type { Field } from "../forms/field.ts";
import { FormFields } from "../forms/form_fields.tsx";
import type { Json, JsonObject } from "../forms/json.ts";
import "./profile.css";
import { ProfileState } from "./profile_state.ts";

export function ProfilePage({ onOpenList }: { onOpenList: () => void }) {
  const state = useMemo(() => new ProfileState(), []);
  useEffect(() => void state.load(), []);
  const agents = visibleAgents.value.filter((agent) => agent.profileSchema !== null);
  useEffect(() => {
    const current = agents.find((agent) => agent.name === state.agent.value?.name);
    state.selectAgent(current ?? agents[0] ?? null);
  }, [agents.map((agent) => agent.name).join()]);
  return (
    <>
      <PageBar title={words.value.title} onOpenList={onOpenList} />
      <div class="profile-scroll">
        <div class="profile">
          <Head state={state} />
          {state.profile.value && (
            <>
              <ProfileForm state={state} agents={agents} />
              <SkillData state={state} />
              <Export />
            </>
          )}
        </div>
      </div>
    </>
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
          {text.tryAgain}
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

function SkillData({ state }: { state: ProfileState }) {
  const text = words.value;
  const skills = Object.entries((state.profile.value?.skillData ?? {}) as JsonObject);
  return (
    <section class="profile-section">
      <h2>{text.skills}</h2>
      <p class="soft small">{skills.length ? text.skillsAbout : text.noSkills}</p>
      {skills.map(([name, data]) => {
        const title = findSkill(state.agent.value, name)?.title || name;
        return (
          <details key={name} class="profile-skill">
            <summary>{title}</summary>
            <pre class="profile-data" tabIndex={0}>
              {JSON.stringify(data, null, 2)}
            </pre>
            <button
              type="button"
              class="danger"
              disabled={state.isBusy.value}
              onClick={() => void deleteSkillData(state, name, title, data)}
            >
              {text.remove(title)}
            </button>
          </details>
        );
      })}
    </section>
  );
}

async function deleteSkillData(state: ProfileState, name: string, title: string, data: Json): Promise<void> {
  if (!(await state.change({ skill_data: { [name]: null } }))) return;
  notify(words.value.removed(title), {
    label: words.value.undo,
    act: () => void state.change({ skill_data: { [name]: data } }),
  });
}

function Export() {
  const isBusy = useSignal(false);
  const text = words.value;
  async function exportData(): Promise<void> {
    isBusy.value = true;
    try {
      const response = await send("/api/v1/agent/me/export");
      saveFile("recto-export.ndjson", await response.blob());
    } catch (error) {
      notifyError(error);
    }
    isBusy.value = false;
  }
  return (
    <section class="profile-section">
      <h2>{text.exportTitle}</h2>
      <p class="soft small">{text.exportAbout}</p>
      <button type="button" disabled={isBusy.value} onClick={() => void exportData()}>
        <Icon name="download" />
        {isBusy.value ? text.exporting : text.export}
      </button>
    </section>
  );
}

interface FormProps {
  readonly state: ProfileState;
  readonly agents: readonly Agent[];
}

function ProfileForm({ state, agents }: FormProps) {
  const form = state.form.value;
  const text = words.value;

  async function save(event: Event): Promise<void> {
    event.preventDefault();
    const result = await state.save();
    if (result !== "rejected") notify(words.value[result]);
  }
  const deleteButton = (field: Field) =>
    field.name in state.values && (
      <button type="button" class="plain small profile-delete" onClick={() => void deleteField(state, field)}>
        {text.remove(field.title)}
      </button>
    );

  return (
    <>
      {!Object.keys(state.values).length && (
        <div class="profile-empty">
          <p>
            <strong>{text.empty}</strong>
          </p>
          <p class="soft">{agents.length > 0 ? text.emptyHelp : text.noSchema}</p>
        </div>
      )}
      {agents.length > 1 && <AgentSelect state={state} agents={agents} />}
      {form && form.root.fields.length > 0 && (
        <form class="profile-form" noValidate onSubmit={(event) => void save(event)}>
          <FormFields key={form.id} form={form} below={deleteButton} />
          {state.problem.value && (
            <p class="problem" role="alert">
              {state.problem.value}
            </p>
          )}
          <button type="submit" class="primary" disabled={state.isBusy.value}>
            {state.isBusy.value ? text.saving : text.save}
          </button>
        </form>
      )}
    </>
  );
}

async function deleteField(state: ProfileState, field: Field): Promise<void> {
  const value = state.values[field.name];
  if (value === undefined || !(await state.change({ [field.name]: null }))) return;
  notify(words.value.removed(field.title), {
    label: words.value.undo,
    act: () => void state.change({ [field.name]: value }),
  });
}

function AgentSelect({ state, agents }: FormProps) {
  return (
    <label>
      {words.value.agent}
      <select
        value={state.agent.value?.name ?? ""}
        onChange={(event) => {
          const { value } = event.currentTarget;
          state.selectAgent(agents.find((agent) => agent.name === value) ?? null);
        }}
      >
        {agents.map((agent) => (
          <option key={agent.name} value={agent.name}>
            {agent.name}
          </option>
        ))}
      </select>
    </label>
  );
}

export const words = bilingual(
  {
    title: "Your data",
    about: "Agents with skills read your profile. Each skill reads only the fields it declares. You can edit or delete everything here.",
    tier: "Tier",
    updated: (time: string) => `Last updated ${time}`,
    empty: "Your profile is empty.",
    emptyHelp: "Agents add details as you share them in conversations. You can also fill in the fields yourself.",
    noSchema: "No agent on this server declares profile fields. Data saved by other programs appears as JSON.",
    agent: "Fields of agent",
    save: "Save",
    saving: "Saving…",
    saved: "Saved",
    unchanged: "No changes to save",
    loading: "Loading…",
    tryAgain: "Try again",
    remove: (title: string) => `Delete ${title}`,
    removed: (title: string) => `${title} deleted`,
    undo: "Undo",
    skills: "Skill data",
    skillsAbout: "Results that skills save so that they can reuse them.",
    noSkills: "No skill has saved data about you.",
    exportTitle: "Export",
    exportAbout: "Download everything this server stores about you: conversations, files and profile, one JSON object per line.",
    export: "Export all data",
    exporting: "Exporting…",
  },
  {
    title: "你的数据",
    about: "带技能的智能体会读取你的资料，每个技能只读取它声明的字段。你可以在这里编辑或删除所有内容。",
    tier: "等级",
    updated: (time: string) => `上次更新：${time}`,
    empty: "你的资料还是空的。",
    emptyHelp: "你在对话中提供的信息会由智能体保存到这里，你也可以自己填写。",
    noSchema: "这个服务器上没有声明资料字段的智能体。其他程序保存的数据以 JSON 显示。",
    agent: "显示该智能体的字段",
    save: "保存",
    saving: "正在保存…",
    saved: "已保存",
    unchanged: "没有需要保存的改动",
    loading: "正在加载…",
    tryAgain: "重试",
    remove: (title: string) => `删除${title}`,
    removed: (title: string) => `已删除${title}`,
    undo: "撤销",
    skills: "技能数据",
    skillsAbout: "技能保存的结果，供以后直接使用。",
    noSkills: "没有技能保存你的数据。",
    exportTitle: "导出",
    exportAbout: "下载这个服务器保存的所有与你有关的数据：对话、文件和资料，每行一个 JSON 对象。",
    export: "导出全部数据",
    exporting: "正在导出…",
  },
);
