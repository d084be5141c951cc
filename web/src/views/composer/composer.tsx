/** Where one writes: the box, its files, the skill in force, and the button that sends or stops. */

import type { Agent } from "../../api/routes.ts";
import { stop } from "../../conversation/actions.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { Icon } from "../../parts/icon.tsx";
import { notifyError } from "../../state/notices.ts";
import { speak } from "../chat/speak.ts";
import { AttachButton } from "./attach_button.tsx";
import { Box } from "./box.tsx";
import "./composer.css";
import { draftOf, LONGEST, type Draft } from "./draft.ts";
import { focusBox } from "./focus.ts";
import { SkillInForce } from "./skill_in_force.tsx";
import { UploadList } from "./upload_list.tsx";
import { words } from "./words.ts";

interface Props {
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

/** The length is told from here on. */
const NEARLY = 9_000;

export function Composer({ thread, agent }: Props) {
  const draft = draftOf(thread);
  const most = agent?.fileInput?.maxFiles ?? null;
  const isTooMany = most !== null && draft.uploads.list.value.filter((upload) => upload.state !== "failed").length > most;
  const send = () => {
    if (draft.canSend.value && !isTooMany) void sendDraft(thread, agent, draft);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div class="composer-box">
        <UploadList uploads={draft.uploads} agent={agent} />
        {isTooMany && (
          <p class="composer-told" role="alert">
            {words.value.tooMany(most)}
          </p>
        )}
        <Box thread={thread} agent={agent} draft={draft} onSend={send} />
        <div class="composer-row">
          {agent?.fileInput && <AttachButton uploads={draft.uploads} agent={agent} />}
          <SkillInForce thread={thread} agent={agent} draft={draft} />
          <Length draft={draft} />
          <SendOrStop thread={thread} draft={draft} isRefused={isTooMany} />
        </div>
      </div>
    </form>
  );
}

async function sendDraft(thread: OpenThread, agent: Agent | null, draft: Draft): Promise<void> {
  const text = draft.text.value.trim();
  const files = draft.uploads.ready.value;
  const skill = draft.leavesSkill.value ? "core" : null;
  draft.clear();
  focusBox();
  await speak(thread, agent, { text, files, skill });
}

function Length({ draft }: { draft: Draft }) {
  const length = draft.length.value;
  if (length < NEARLY) return null;
  const text = words.value;
  const isTooLong = length > LONGEST;
  return (
    <p class={isTooLong ? "composer-length too-long" : "composer-length"} role="status">
      {text.length(length, LONGEST)}
      {isTooLong && ` · ${text.tooLong}`}
    </p>
  );
}

interface ButtonProps {
  readonly thread: OpenThread;
  readonly draft: Draft;
  readonly isRefused: boolean;
}

/** While a run is at work it can be stopped; what is written meanwhile can be sent all the same. */
function SendOrStop({ thread, draft, isRefused }: ButtonProps) {
  const text = words.value;
  const isRunning = thread.isRunning.value;
  return (
    <div class="composer-buttons">
      {isRunning && (
        <button
          type="button"
          class="round stop"
          aria-label={text.stop}
          title={text.stop}
          onClick={() => void stop(thread).catch(notifyError)}
        >
          <Icon name="stop" />
        </button>
      )}
      {(!isRunning || !draft.isEmpty.value) && (
        <button
          type="submit"
          class="primary round"
          aria-label={text.send}
          title={text.send}
          disabled={!draft.canSend.value || isRefused}
        >
          <Icon name="send" />
        </button>
      )}
    </div>
  );
}
