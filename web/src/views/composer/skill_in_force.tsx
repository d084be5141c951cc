/** The skill that answers, and the way out of it: the next message leaves it, unless one takes that back. */

import type { Agent } from "../../api/routes.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { Icon } from "../../parts/icon.tsx";
import { IconButton } from "../../parts/icon_button.tsx";
import { findSkill } from "../../state/agents.ts";
import type { Draft } from "./draft.ts";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
  readonly draft: Draft;
}

export function SkillInForce({ thread, agent, draft }: Props) {
  const name = thread.details.value?.skill;
  if (!name || name === "core") return null;
  const text = words.value;
  const title = findSkill(agent, name)?.title ?? name;
  if (draft.leavesSkill.value) {
    return (
      <p class="skill leaving" role="status">
        <span>{text.leaving(title)}</span>
        <button
          type="button"
          class="plain small"
          onClick={() => {
            draft.leavesSkill.value = false;
          }}
        >
          {text.stay}
        </button>
      </p>
    );
  }
  return (
    <p class="skill">
      <Icon name="sparkle" />
      <span>{text.skill(title)}</span>
      <IconButton
        icon="close"
        label={text.leave(title)}
        onClick={() => {
          draft.leavesSkill.value = true;
        }}
      />
    </p>
  );
}
