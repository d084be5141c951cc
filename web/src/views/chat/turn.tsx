/** A message of the user and what came of it. Drawn again only when something in it has changed. */

import type { Agent } from "../../api/routes.ts";
import type { Message, Turn } from "../../conversation/messages.ts";
import type { OpenThread } from "../../conversation/open_thread.ts";
import { memo } from "../../parts/memo.ts";
import { Answer } from "./answer.tsx";
import { Note } from "./note.tsx";
import { Reasoning } from "./reasoning.tsx";
import "./turn.css";
import { AnswerActions } from "./turn_actions.tsx";
import { UserMessageView } from "./user_message.tsx";
import { words } from "./words.ts";

interface Props {
  readonly turn: Turn;
  readonly thread: OpenThread;
  readonly agent: Agent | null;
  readonly isLast: boolean;
  /** A run is at work on it. */
  readonly isAnswered: boolean;
}

export const TurnView = memo(({ turn, thread, agent, isLast, isAnswered }: Props) => (
  <section class={isLast ? "turn last" : "turn"} data-turn={turn.key}>
    {turn.user && <UserMessageView message={turn.user} thread={thread} agent={agent} />}
    {turn.answers.map((message) => (
      <Part key={message.id} message={message} thread={thread} agent={agent} />
    ))}
    {isAnswered && !isWriting(turn) && (
      <p class="working soft small">
        <span class="dots" aria-hidden="true" /> {words.value.working}
      </p>
    )}
    {!isAnswered && <AnswerActions turn={turn} thread={thread} agent={agent} />}
  </section>
));

interface PartProps {
  readonly message: Turn["answers"][number];
  readonly thread: OpenThread;
  readonly agent: Agent | null;
}

function Part({ message, thread, agent }: PartProps) {
  switch (message.role) {
    case "assistant":
      return <Answer message={message} thread={thread} agent={agent} />;
    case "reasoning":
      return <Reasoning message={message} />;
    case "note":
      return <Note message={message} />;
  }
}

/** Something of it can be seen growing. */
function isWriting(turn: Turn): boolean {
  const last: Message | undefined = turn.answers.at(-1);
  if (last?.role === "reasoning") return last.isStreaming;
  if (last?.role === "note") return last.kind === "recto.progress";
  return last?.role === "assistant" && last.isStreaming && last.text !== "" && !/^\s*\{/.test(last.text);
}
