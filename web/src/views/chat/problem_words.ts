/** What people are told when a run came to nothing, by its code: what happened, and what helps. */

import { bilingual } from "../../language/language.ts";

const en = {
  model_failed:
    "The model could not be reached, was too busy, or refused the request. Try again in a few minutes; if it goes on, say it in other words or tell whoever runs the server.",
  too_long: "The conversation no longer fits into the model, even shortened. Start a new one.",
  compact_failed: "The model wrote no summary. Nothing has changed; try it again later.",
  filtered: "The provider filtered the answer. Say it in other words.",
  bad_arguments: "The model called its tools in ways they do not take, several times in a row. Say it in other words.",
  unusable_reply: "The model wrote nothing that could be used. Say it in other words, or use a larger model.",
  deadline: "The answer used up all of its time. Say “go on”, and it goes on from there.",
  too_many_steps: "The answer used up all of its steps. Say “go on”, and it goes on from there.",
  internal: "The server failed. Say it again; if that does not help, tell whoever runs the server.",
  unreached: "The server could not be reached. Try again once there is a connection.",
  lost: "The answer can no longer be followed. Load the conversation again to see what became of it.",
};

const zh: typeof en = {
  model_failed: "模型太忙、连接不上，或拒绝了请求。请过几分钟再试；如果一直这样，换个说法，或联系服务器的管理者。",
  too_long: "对话太长，即使缩短后模型也放不下了。请开始新对话。",
  compact_failed: "模型没有写出总结。什么都没有改变，请稍后再试。",
  filtered: "服务商过滤了这个回答。请换个说法。",
  bad_arguments: "模型连续几次错误地调用了工具。请换个说法。",
  unusable_reply: "模型的回复无法使用。请换个说法，或换用更大的模型。",
  deadline: "这次回答用完了时间。说“继续”，就会接着往下做。",
  too_many_steps: "这次回答用完了步数。说“继续”，就会接着往下做。",
  internal: "服务器出错了。请再说一次；如果没有用，请联系服务器的管理者。",
  unreached: "无法连接服务器。请在网络恢复后重试。",
  lost: "无法继续跟踪这个回答。请重新载入对话，看看结果如何。",
};

const words = bilingual<Readonly<Record<string, string>>>(en, zh);

/** Our words for a code; the server's own where we have none. */
export function problemWords(code: string, message: string): string {
  return words.value[code] ?? message;
}
