/** What the model said: its words, its calls, and the card where there is one. */

import type { Agent } from "../../api/routes.ts";
import { shownWords, type AssistantMessage } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { Icon } from "../../parts/icon.tsx";
import { Markdown } from "../../parts/markdown/markdown.tsx";
import { memo } from "../../parts/memo.ts";
import { ToolCard } from "../cards/tool_card.tsx";
import { UiCard } from "../cards/ui_card.tsx";
import { speak } from "./speak.ts";
import { words } from "./words.ts";

interface Props {
  readonly message: AssistantMessage;
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

export const Answer = memo(({ message, thread, agent }: Props) => {
  const said = shownWords(message);
  return (
    <div class="answer">
      {said && (
        <>
          <h2 class="hidden-but-read">{words.value.answer}</h2>
          <Markdown text={said} isStreaming={message.isStreaming} />
        </>
      )}
      {message.calls.map((call) => (
        <ToolCard key={call.id} call={call} agent={agent} />
      ))}
      {message.ui && (
        <UiCard schema={message.ui} onSay={(text) => void speak(thread, agent, { text, files: [] })} />
      )}
      <End status={message.status} />
    </div>
  );
});

/** Why an answer is not whole. */
function End({ status }: { status: string | null }) {
  const told = Object.entries(words.value.ends).find(([name]) => name === status)?.[1];
  if (!told) return null;
  return (
    <p class="answer-end small">
      <Icon name="warning" /> {told}
    </p>
  );
}
