import { bilingual } from "../../language/language.ts";

export const words = bilingual(
  {
    title: "Keyboard shortcuts",
    close: "Close",
    send: "Send",
    newLine: "New line",
    newThread: "New conversation",
    search: "Search conversations",
    write: "Go to where one writes",
    stop: "Stop the answer",
    editLast: "Edit the last message (in an empty box)",
    inspect: "What the model saw in the last answer",
    calls: "The call before, the call after (in what the model saw)",
    help: "This list",
  },
  {
    title: "键盘快捷键",
    close: "关闭",
    send: "发送",
    newLine: "换行",
    newThread: "新对话",
    search: "搜索对话",
    write: "回到输入框",
    stop: "停止回答",
    editLast: "编辑上一条消息（输入框为空时）",
    inspect: "查看上一个回答时模型看到了什么",
    calls: "上一次、下一次调用（在“模型看到了什么”里）",
    help: "这个列表",
  },
);
