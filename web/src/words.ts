/** The words of the page as a whole. */

import { bilingual } from "./language/language.ts";

export const words = bilingual(
  { skip: "Skip to the conversation", threads: "Conversations", inspector: "What the model saw" },
  { skip: "跳到对话", threads: "对话列表", inspector: "模型看到了什么" },
);
