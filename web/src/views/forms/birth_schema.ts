/** A birth, asked for as people tell it: its schema with names, order and kinds of fields that are pleasant to fill in. */

import { isObject, type Json, type JsonObject } from "./json.ts";

interface Said {
  readonly en: JsonObject;
  readonly zh: JsonObject;
}

/** In the order they are asked for. Those that only few people need stand behind a fold. */
const ASKED: Readonly<Record<string, Said>> = {
  calendar: {
    en: { title: "Calendar", enum: ["solar", "lunar"], "x-labels": { solar: "Gregorian", lunar: "Chinese lunar" } },
    zh: { title: "历法", enum: ["solar", "lunar"], "x-labels": { solar: "公历", lunar: "农历" } },
  },
  date: {
    en: { title: "Date of birth" },
    zh: { title: "出生日期" },
  },
  leap_month: {
    en: { title: "The month is a leap month" },
    zh: { title: "这个月是闰月" },
  },
  time: {
    en: { title: "Time of birth", description: "By the clock of the place.", "x-unknown": "I do not know the time" },
    zh: { title: "出生时间", description: "按出生地当时的钟表时间。", "x-unknown": "不知道时间" },
  },
  place: {
    en: { title: "Place of birth", description: "A city is enough.", examples: ["Beijing"] },
    zh: { title: "出生地点", description: "写城市就可以。", examples: ["北京"] },
  },
  gender: {
    en: {
      title: "Gender",
      description: "It decides which way the luck cycles of Bazi go.",
      enum: ["female", "male"],
      "x-labels": { female: "Female", male: "Male" },
    },
    zh: {
      title: "性别",
      description: "八字大运的顺逆由它决定。",
      enum: ["female", "male"],
      "x-labels": { female: "女", male: "男" },
    },
  },
  timezone: {
    en: { title: "Time zone", description: "Only if the place is hard to find.", examples: ["Europe/Paris"], "x-more": true },
    zh: { title: "时区", description: "只有地点不好查时才需要。", examples: ["Asia/Shanghai"], "x-more": true },
  },
  latitude: {
    en: { title: "Latitude", description: "Degrees; north is positive.", "x-more": true },
    zh: { title: "纬度", description: "以度为单位，北纬为正。", "x-more": true },
  },
  longitude: {
    en: { title: "Longitude", description: "Degrees; east is positive.", "x-more": true },
    zh: { title: "经度", description: "以度为单位，东经为正。", "x-more": true },
  },
  true_solar_time: {
    en: { title: "Go by true solar time", description: "", "x-more": true },
    zh: { title: "按真太阳时排盘", description: "", "x-more": true },
  },
  late_zi: {
    en: {
      title: "From 23:00 on it is",
      enum: ["next_day", "same_day"],
      "x-labels": { next_day: "the next day", same_day: "the same day" },
      "x-more": true,
    },
    zh: {
      title: "23 点以后算",
      enum: ["next_day", "same_day"],
      "x-labels": { next_day: "次日", same_day: "当日" },
      "x-more": true,
    },
  },
};

const ISO_DATE = /^\d{4}-\d\d-\d\d$/;
const CLOCK = /^\d\d:\d\d(:\d\d)?$/;
const ENGLISH_GENDER: Readonly<Record<string, string>> = { 男: "male", 女: "female" };

export interface Birth {
  readonly locale: string;
  /** What is known already: words that no picker can show are written as words. */
  readonly known: JsonObject;
  /** The calendar that is chosen at present. */
  readonly calendar: string | null;
  /** A form that is answered at once needs a date, and says which calendar it is of. */
  readonly isAsked: boolean;
}

/** Only what the schema itself has is asked for. */
export function birthSchema(schema: JsonObject, birth: Birth): JsonObject {
  const { locale, calendar, isAsked } = birth;
  const given = isObject(schema["properties"]) ? schema["properties"] : {};
  const language = locale.startsWith("zh") ? "zh" : "en";
  const names = Object.keys(ASKED).filter((name) => name in given);
  const others = Object.keys(given).filter((name) => !(name in ASKED) && name !== "cancelled");
  const asked = names
    .filter((name) => name !== "leap_month" || calendar === "lunar")
    .map((name): [string, Json] => {
      const before = isObject(given[name]) ? given[name] : {};
      return [name, { ...unlabelled(before), ...ASKED[name]?.[language], ...kindOf(name, birth) }];
    });
  const rest = others.map((name): [string, Json] => [name, given[name] as Json]);
  const required = isAsked ? ["date", "calendar"] : schema["required"];
  return { ...schema, properties: Object.fromEntries([...asked, ...rest]), required: required ?? [] };
}

/** The calendar that a form of a birth has at present. */
export function calendarIn(draft: unknown): string | null {
  if (typeof draft !== "string" || draft === "") return null;
  return draft === JSON.stringify("lunar") ? "lunar" : "solar";
}

/** Values as the form has them: genders by one name each. */
export function birthKnown(known: JsonObject): JsonObject {
  const gender = known["gender"];
  return typeof gender === "string" && gender in ENGLISH_GENDER
    ? { ...known, gender: ENGLISH_GENDER[gender] as string }
    : known;
}

function kindOf(name: string, { known, calendar, isAsked }: Birth): JsonObject {
  const value = known[name];
  const isEmpty = value === undefined || value === null || value === "";
  if (name === "date") {
    // A lunar month may have a 30th where ours has none, so a picker of our calendar would refuse it.
    return calendar !== "lunar" && (isEmpty || ISO_DATE.test(String(value))) ? { format: "date" } : { examples: ["1990-04-21"] };
  }
  if (name === "time") return isEmpty || CLOCK.test(String(value)) ? { format: "time" } : {};
  if (name === "calendar" && isAsked) return { default: "solar" };
  return {};
}

/** What was said to a model of the field is not for people. */
function unlabelled(schema: JsonObject): JsonObject {
  const { description: _description, examples: _examples, default: _default, ...rest } = schema;
  return rest;
}
