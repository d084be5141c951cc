import { bilingual } from "../../language/language.ts";

export const words = bilingual(
  {
    hello: "What would you like to do?",
    about: "Write below, or begin with one of these.",
    pick: "Who answers",
    starters: "To begin with",
    filesHint: "Drop files here, or paste them.",
    inspectHint: "Beside each answer is what the model saw, and why.",
    keysHint: "Press ? for all keys.",
  },
  {
    hello: "想做点什么？",
    about: "在下面输入，或从这些开始。",
    pick: "由谁来回答",
    starters: "可以这样开始",
    filesHint: "把文件拖到这里，或直接粘贴。",
    inspectHint: "每个回答旁边都能看到模型看到了什么、为什么。",
    keysHint: "按 ? 查看所有快捷键。",
  },
);
