/** Chinese texts for reasons and rule names. The server sends them in English, and unknown ones stay in English. */

import { locale } from "../../../language/language.ts";

const REASONS = new Map<string, string>([
  ["the model and its options", "模型及其选项"],
  ["how every request ends", "每个请求的结尾"],
  ["the model may call it", "模型可以调用它"],
  ["as in the conversation", "与对话一致"],
  ["who the agent is and how it works", "智能体是谁、如何工作"],
  ["what the user has at hand in this turn", "用户在这一轮手头的东西"],
  ["files of a past turn, by their ids", "过去一轮的文件，以 id 列出"],
  ["pictures among them are not shown, and it says so", "其中的图片不显示，并已说明"],
  ["pictures in a tool's result, where the model can see them", "工具结果中的图片，放在模型看得到的地方"],
  ["a summary that stands for what was said before", "代替此前对话的摘要"],
  ["the summary stands for it", "已由摘要代替"],
  ["without its ui_hints, which are for clients; they get them all", "去掉了给客户端用的 ui_hints；客户端会收到全部"],
  ["text in it that looks like ours is made harmless", "其中冒充系统内容的文字已被化解"],
  ["the error of the tool put into its words, for the model to read", "工具的错误写进了它的文字，供模型阅读"],
  ["a model answers a user: the turn goes on after its own words", "模型回答的是用户：在它自己的话之后继续这一轮"],
  ["the last reply could not be used: it is asked for again", "上一个回复无法使用：请它重写"],
  ["shown to people, never to models", "只给人看，不给模型"],
  ["this model sees no images", "这个模型看不到图片"],
  ["words put before the calls, where the format has them", "文字移到了调用之前，这是格式规定的位置"],
  ["marked as calls that another model made", "标记为另一个模型发出的调用"],
  ["an empty text is not allowed here", "这里不允许空文本"],
  ["an empty message is not allowed here, so it says that it is empty", "这里不允许空消息，所以写明它是空的"],
  ["thinking left out, since nothing follows it", "略去了思考，因为后面没有内容"],
  ["the name of a tool written as providers take it", "工具名称改写成服务商接受的形式"],
  ["before the first user message, where this provider's conversations begin", "在第一条用户消息之前，而该服务商的对话从那里开始"],
  ["instructions stand before the conversation", "指令放在对话之前"],
  ["call ids rewritten to what the provider gave or accepts", "调用 id 改写为服务商给出或接受的形式"],
  ["calls written as text, for a model without native ones", "调用写成文本，因为模型没有原生调用"],
  ["result written as text, for a model without native calls", "结果写成文本，因为模型没有原生调用"],
  ["no call before it waits for this result", "前面没有等待这个结果的调用"],
  ["moved up to its call, as providers demand", "移到它的调用之后，这是服务商的要求"],
  ["results put in the order of their calls", "结果按调用的顺序排列"],
  ["nothing is said in it", "其中没有内容"],
  ["without the blank at its end, which this provider refuses there", "去掉了末尾的空白，服务商不接受"],
]);

/** Start of the reason of every result in a fold step. */
const STEP = "^not needed for long, folded with (\\S+) others: (\\S+) tokens less on every call, ";

const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/^outside the newest (\d+) messages of history$/, "不在最近 $1 条历史消息之内"],
  [/^(.+): read (\d+) counted from the newest, (\d+) stay$/, "$1：从最新数起第 $2 次读取，只保留 $3 次"],
  [/^result (\d+) counted from the newest, (\d+) stay$/, "从最新数起第 $1 个结果，只保留 $2 个"],
  [
    /^result (\d+) counted from the newest, (\d+) stay, and older than (\S+) minutes$/,
    "从最新数起第 $1 个结果，只保留 $2 个，且已超过 $3 分钟",
  ],
  [
    new RegExp(`${STEP}(\\S+) written to the cache again$`),
    "很久没有用到，与另外 $1 个结果一起折叠：每次调用少 $2 个 token，$3 个重新写入缓存",
  ],
  [
    new RegExp(`${STEP}the provider has no cache that it could break$`),
    "很久没有用到，与另外 $1 个结果一起折叠：每次调用少 $2 个 token，服务商没有会被打断的缓存",
  ],
  [
    new RegExp(`${STEP}nothing of the page was in the cache \\((.+)\\)$`),
    "很久没有用到，与另外 $1 个结果一起折叠：每次调用少 $2 个 token，页面的内容都不在缓存里（$3）",
  ],
  [/^a batch read, stale for each of its files: (.+)$/, "一次批量读取，其中每个文件都已过时：$1"],
  [/^(\d+) of (\d+) calls never got a result$/, "$2 个调用中有 $1 个一直没有结果"],
  [/^phase (\S+): skill (\S+), scenario (\S+)$/, "阶段 $1：技能 $2，场景 $3"],
  [/^phase (\S+)$/, "阶段 $1"],
  [/^next step (\S+)$/, "下一步 $1"],
  [/^best cases (.+)$/, "最佳案例 $1"],
];

const RULES: Readonly<Record<string, string>> = {
  S1: "提示词预算",
  S2: "历史窗口",
  S5: "技能目录",
  S9: "系统提示词",
  F1: "提醒",
  F2: "过去各轮的文件",
  F3: "防伪造",
  D2: "文档与图片",
  P11: "调用与结果",
  P14: "给客户端的提示",
  R2: "更新的读取",
  R5: "各文件更新的读取",
  R6: "保持原样",
  R8: "旧命令",
  R9: "旧搜索",
  R10: "修复",
  R13: "压缩",
  X2: "按成本折叠",
  fit: "适配",
};

export function reasonText(reason: string): string {
  return locale.value === "zh" ? translateReason(reason) : reason;
}

/** Return the name of a rule, or an empty string. */
export function ruleText(rule: string, name: string | undefined): string {
  return (locale.value === "zh" ? RULES[rule] : undefined) ?? name ?? "";
}

export function translateReason(reason: string): string {
  const whole = REASONS.get(reason);
  if (whole !== undefined) return whole;
  return reason.split("; ").map(translatePart).join("；");
}

function translatePart(reason: string): string {
  const translation = REASONS.get(reason);
  if (translation !== undefined) return translation;
  const match = PATTERNS.find(([pattern]) => pattern.test(reason));
  return match ? reason.replace(match[0], match[1]) : reason;
}
