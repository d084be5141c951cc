import { bilingual } from "../../language/language.ts";
import type { Fault } from "./draft.ts";

type Says = (limit: string) => string;

const EN: Readonly<Record<Fault, Says>> = {
  missing: () => "This is needed.",
  short: (limit) => `At least ${limit} characters.`,
  long: (limit) => `At most ${limit} characters.`,
  pattern: (limit) => (limit ? `Not in the expected form. Such as: ${limit}` : "Not in the expected form."),
  date: () => "A date such as 1990-05-15.",
  time: () => "A time such as 14:30.",
  email: () => "An address such as anna@example.com.",
  uri: () => "A full address such as https://example.com.",
  number: () => "A number.",
  whole: () => "A whole number.",
  least: (limit) => `${limit} or more.`,
  most: (limit) => `${limit} or less.`,
  above: (limit) => `More than ${limit}.`,
  below: (limit) => `Less than ${limit}.`,
  few: (limit) => `At least ${limit}.`,
  many: (limit) => `At most ${limit}.`,
  json: () => "This is not JSON: look for a missing quote, comma or bracket.",
  refused: (words) => words,
};

const ZH: Readonly<Record<Fault, Says>> = {
  missing: () => "这一项必填。",
  short: (limit) => `至少 ${limit} 个字符。`,
  long: (limit) => `最多 ${limit} 个字符。`,
  pattern: (limit) => (limit ? `格式不对，例如：${limit}` : "格式不对。"),
  date: () => "请填日期，例如 1990-05-15。",
  time: () => "请填时间，例如 14:30。",
  email: () => "请填邮箱，例如 anna@example.com。",
  uri: () => "请填完整的网址，例如 https://example.com。",
  number: () => "请填数字。",
  whole: () => "请填整数。",
  least: (limit) => `不能小于 ${limit}。`,
  most: (limit) => `不能大于 ${limit}。`,
  above: (limit) => `必须大于 ${limit}。`,
  below: (limit) => `必须小于 ${limit}。`,
  few: (limit) => `至少 ${limit} 项。`,
  many: (limit) => `最多 ${limit} 项。`,
  json: () => "不是有效的 JSON：检查是否少了引号、逗号或括号。",
  refused: (words) => words,
};

export const words = bilingual(
  {
    optional: "optional",
    choose: "Choose…",
    notSaid: "Not said",
    add: "Add",
    remove: (title: string, place: number) => `Remove ${title} ${place}`,
    item: (title: string, place: number) => `${title} ${place}`,
    more: "More details",
    such: (example: string) => `Such as ${example}`,
    asJson: "As JSON",
    wrong: (count: number) => (count === 1 ? "One field needs another look." : `${count} fields need another look.`),
    faults: EN,
  },
  {
    optional: "选填",
    choose: "请选择…",
    notSaid: "不填",
    add: "添加",
    remove: (title: string, place: number) => `移除第 ${place} 项${title}`,
    item: (title: string, place: number) => `${title}，第 ${place} 项`,
    more: "更多选项",
    such: (example: string) => `例如 ${example}`,
    asJson: "以 JSON 填写",
    wrong: (count: number) => `有 ${count} 处需要修改。`,
    faults: ZH,
  },
);
