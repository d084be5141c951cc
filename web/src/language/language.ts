/** Page language: the browser setting until the user selects one. */

import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";

import { readSetting, writeSetting } from "../state/local_storage.ts";

type Locale = "en" | "zh";

export const LOCALES: readonly Locale[] = ["en", "zh"];

export const locale = signal<Locale>(readSetting("locale", LOCALES) ?? browserLocale(navigator.languages));

effect(() => {
  document.documentElement.lang = locale.value === "zh" ? "zh-CN" : "en";
});

export function chooseLocale(selected: Locale): void {
  writeSetting("locale", selected);
  locale.value = selected;
}

function browserLocale(languages: readonly string[]): Locale {
  const match = languages.find((language) => /^(en|zh)\b/i.test(language));
  return match?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** Return the strings of a view in the page language. The type check ensures that both languages have the same keys. */
export function bilingual<Words>(en: Words, zh: NoInfer<Words>): ReadonlySignal<Words> {
  return computed(() => (locale.value === "zh" ? zh : en));
}

export function formatNumber(value: number): string {
  return new Intl.NumberFormat(locale.value).format(value);
}

export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB"];
  const power = Math.min(Math.floor(Math.log10(bytes) / 3), units.length);
  return `${(bytes / 1000 ** power).toFixed(1)} ${units[power - 1]}`;
}

export function formatTime(iso: string): string {
  return new Intl.DateTimeFormat(locale.value, { dateStyle: "medium", timeStyle: "short" }).format(new Date(iso));
}

/** Format a price in billionths of a US dollar. */
export function formatPrice(nano: number): string {
  const value = nano / 1e9;
  return `$${value < 0.01 ? value.toFixed(6) : value.toFixed(4)}`;
}

/** Format an amount in billionths of a currency unit. */
export function formatMoney(nano: number, currency: string): string {
  const value = nano / 1e9;
  const digits = Math.abs(value) < 1 ? 4 : 2;
  const number = new Intl.NumberFormat(locale.value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${number.format(value)} ${currency}`;
}

export function formatSeconds(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
