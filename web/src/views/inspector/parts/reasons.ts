/** Chinese texts for reasons and rule names. The server sends them in English, and unknown ones stay in English. */

import { locale } from "../../../language/language.ts";

const REASONS = new Map<string, string>([
  ["the model and its options", "模型及其选项"],
  ["how every request ends", "每个请求的结尾"],
  ["the model may call it", "模型可以调用它"],
  ["as in the conversation", "与对话一致"],
  ["who the agent is and how it works", "智能体是谁、如何工作"],
  ["what the user has at hand in this turn", "用户在这一轮可用的内容"],
  ["files of a past turn, by their ids", "过去一轮的文件，以 id 列出"],
  ["pictures among them are not shown, and it says so", "其中的图片未显示，已注明"],
  ["pictures in a tool's result, where the model can see them", "工具结果中的图片，已移到模型可见的位置"],
  ["a summary that stands for what was said before", "代替此前对话的摘要"],
  ["the summary stands for it", "已由摘要代替"],
  ["without its ui_hints, which are for clients; they get them all", "已去掉供客户端使用的 ui_hints，客户端仍会收到全部内容"],
  ["text in it that looks like ours is made harmless", "其中冒充系统内容的文字已做无害化处理"],
  ["the error of the tool put into its words, for the model to read", "工具的错误已写入结果文字，供模型阅读"],
  ["a model answers a user: the turn goes on after its own words", "模型只能回复用户消息，已补充一条用户消息以继续这一轮"],
  ["the last reply could not be used: it is asked for again", "上一个回复无法使用，已要求模型重写"],
  ["shown to people, never to models", "仅向用户显示，不发送给模型"],
  ["this model sees no images", "这个模型不支持图片"],
  ["words put before the calls, where the format has them", "文字已按格式要求移到调用之前"],
  ["marked as calls that another model made", "已标记为其他模型发出的调用"],
  ["an empty text is not allowed here", "这里不允许空文本"],
  ["an empty message is not allowed here, so it says that it is empty", "这里不允许空消息，已注明内容为空"],
  ["thinking left out, since nothing follows it", "已略去思考内容，因为其后没有其他内容"],
  ["the name of a tool written as providers take it", "工具名称已改写为服务商接受的形式"],
  ["before the first user message, where this provider's conversations begin", "位于第一条用户消息之前，而该服务商要求对话以用户消息开头"],
  ["instructions stand before the conversation", "指令放在对话之前"],
  ["call ids rewritten to what the provider gave or accepts", "调用 id 已改写为服务商提供或接受的形式"],
  ["calls written as text, for a model without native ones", "调用已写成文本，因为模型不支持原生调用"],
  ["result written as text, for a model without native calls", "结果已写成文本，因为模型不支持原生调用"],
  ["no call before it waits for this result", "前面没有等待这个结果的调用"],
  ["moved up to its call, as providers demand", "已按服务商要求移到对应的调用之后"],
  ["results put in the order of their calls", "结果已按调用的顺序排列"],
  ["nothing is said in it", "其中没有内容"],
  ["without the blank at its end, which this provider refuses there", "已去掉服务商不接受的末尾空白"],
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
    "很久没有用到，与另外 $1 个结果一起折叠：每次调用少 $2 个 token，服务商没有会因此失效的缓存",
  ],
  [
    new RegExp(`${STEP}nothing of the page was in the cache \\((.+)\\)$`),
    "很久没有用到，与另外 $1 个结果一起折叠：每次调用少 $2 个 token，页面内容都不在缓存中（$3）",
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
