/** The fields of the profile as one form; each that is kept can be forgotten by itself. */

import type { Agent } from "../../api/routes.ts";
import { notify } from "../../state/notices.ts";
import type { Field } from "../forms/field.ts";
import { FormFields } from "../forms/form_fields.tsx";
import type { JsonObject } from "../forms/json.ts";
import type { ProfileState } from "./profile_state.ts";
import { words } from "./words.ts";

interface Props {
  readonly state: ProfileState;
  readonly agents: readonly Agent[];
}

export function KeptFields({ state, agents }: Props) {
  const form = state.form.value;
  const text = words.value;
  const kept = (state.profile.value?.profile ?? {}) as JsonObject;

  async function save(event: Event): Promise<void> {
    event.preventDefault();
    const saved = await state.save();
    if (saved !== "refused") notify(words.value[saved]);
  }
  const forget = (field: Field) =>
    field.name in kept && (
      <button type="button" class="plain small profile-forget" onClick={() => void forgetField(state, field, kept)}>
        {text.forget(field.title)}
      </button>
    );

  return (
    <>
      {!Object.keys(kept).length && <Empty hasSchema={agents.length > 0} />}
      {agents.length > 1 && <AgentChoice state={state} agents={agents} />}
      {form && form.root.value.fields.length > 0 && (
        <form class="profile-form" noValidate onSubmit={(event) => void save(event)}>
          <FormFields key={form.id} form={form} below={forget} />
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

async function forgetField(state: ProfileState, field: Field, kept: JsonObject): Promise<void> {
  const before = kept[field.name];
  if (before === undefined || !(await state.change({ [field.name]: null }))) return;
  notify(words.value.forgotten(field.title), {
    label: words.value.undo,
    act: () => void state.change({ [field.name]: before }),
  });
}

function Empty({ hasSchema }: { hasSchema: boolean }) {
  const text = words.value;
  return (
    <div class="profile-empty">
      <p>
        <strong>{text.empty}</strong>
      </p>
      <p class="soft">{hasSchema ? text.emptyHow : text.noSchema}</p>
    </div>
  );
}

function AgentChoice({ state, agents }: Props) {
  return (
    <label>
      {words.value.agent}
      <select
        value={state.agent.value?.name ?? ""}
        onChange={(event) => {
          const { value } = event.currentTarget;
          state.showBy(agents.find((agent) => agent.name === value) ?? null);
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
