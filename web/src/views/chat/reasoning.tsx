/** What the model thought before it spoke, folded away. */

import type { ReasoningMessage } from "../../conversation/messages.ts";
import { words } from "./words.ts";

export function Reasoning({ message }: { message: ReasoningMessage }) {
  const text = words.value;
  return (
    <details class="reasoning">
      <summary>{message.isStreaming ? text.thinking : text.thought}</summary>
      <p>{message.text}</p>
    </details>
  );
}
