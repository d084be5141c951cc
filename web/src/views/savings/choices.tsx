/** Which days, and which agent's. */

import { PERIODS, type SavingsState } from "./savings_state.ts";
import { words } from "./words.ts";

const ALL = "";

export function Choices({ state }: { state: SavingsState }) {
  const text = words.value;
  return (
    <div class="savings-choices">
      <label>
        {text.period}
        <select
          value={String(state.days.value ?? ALL)}
          onChange={(event) => {
            const { value } = event.currentTarget;
            state.days.value = value === ALL ? null : Number(value);
            void state.load();
          }}
        >
          {PERIODS.map((days) => (
            <option key={days} value={days ?? ALL}>
              {days === null ? text.always : text.days(days)}
            </option>
          ))}
        </select>
      </label>
      <label>
        {text.agent}
        <select
          value={state.agent.value ?? ALL}
          onChange={(event) => {
            state.agent.value = event.currentTarget.value || null;
            void state.load();
          }}
        >
          <option value={ALL}>{text.allAgents}</option>
          {state.agents.value.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}
