import { bilingual } from "../../language/language.ts";
import type { ErrorCode } from "./draft.ts";

type Message = (limit: string) => string;

const EN: Readonly<Record<ErrorCode, Message>> = {
  required: () => "This field is required.",
  minLength: (limit) => `Enter at least ${limit} characters.`,
  maxLength: (limit) => `Enter at most ${limit} characters.`,
  pattern: (limit) => (limit ? `Invalid format. Example: ${limit}` : "Invalid format."),
  date: () => "Enter a date, for example 2026-05-15.",
  time: () => "Enter a time, for example 14:30.",
  email: () => "Enter an email address, for example anna@example.com.",
  uri: () => "Enter a full URL, for example https://example.com.",
  number: () => "Enter a number.",
  integer: () => "Enter a whole number.",
  minimum: (limit) => `Enter ${limit} or more.`,
  maximum: (limit) => `Enter ${limit} or less.`,
  exclusiveMinimum: (limit) => `Enter more than ${limit}.`,
  exclusiveMaximum: (limit) => `Enter less than ${limit}.`,
  minItems: (limit) => `Add at least ${limit} items.`,
  maxItems: (limit) => `Keep at most ${limit} items.`,
  json: () => "Invalid JSON. Check for a missing quote, comma or bracket.",
  server: (message) => message,
};

const ZH: Readonly<Record<ErrorCode, Message>> = {
  required: () => "此项必填。",
  minLength: (limit) => `至少输入 ${limit} 个字符。`,
  maxLength: (limit) => `最多输入 ${limit} 个字符。`,
  pattern: (limit) => (limit ? `格式无效，例如：${limit}` : "格式无效。"),
  date: () => "请输入日期，例如 2026-05-15。",
  time: () => "请输入时间，例如 14:30。",
  email: () => "请输入邮箱地址，例如 anna@example.com。",
  uri: () => "请输入完整网址，例如 https://example.com。",
  number: () => "请输入数字。",
  integer: () => "请输入整数。",
  minimum: (limit) => `不能小于 ${limit}。`,
  maximum: (limit) => `不能大于 ${limit}。`,
  exclusiveMinimum: (limit) => `必须大于 ${limit}。`,
  exclusiveMaximum: (limit) => `必须小于 ${limit}。`,
  minItems: (limit) => `至少添加 ${limit} 项。`,
  maxItems: (limit) => `最多保留 ${limit} 项。`,
  json: () => "JSON 无效，请检查是否缺少引号、逗号或括号。",
  server: (message) => message,
};

export const words = bilingual(
  {
    optional: "optional",
    choose: "Select…",
    none: "Not specified",
    add: "Add",
    remove: (title: string, place: number) => `Remove ${title} ${place}`,
    item: (title: string, place: number) => `${title} ${place}`,
    more: "More options",
    example: (example: string) => `Example: ${example}`,
    json: "JSON",
    invalid: (count: number) => (count === 1 ? "1 field needs attention." : `${count} fields need attention.`),
    errors: EN,
  },
  {
    optional: "选填",
    choose: "请选择…",
    none: "不填",
    add: "添加",
    remove: (title: string, place: number) => `移除第 ${place} 项${title}`,
    item: (title: string, place: number) => `${title}，第 ${place} 项`,
    more: "更多选项",
    example: (example: string) => `例如：${example}`,
    json: "JSON",
    invalid: (count: number) => `有 ${count} 处需要修改。`,
    errors: ZH,
  },
);
