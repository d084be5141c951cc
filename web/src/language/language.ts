/** The language of the page: the browser's at first, then what was chosen. Every view has its words beside it. */

import { computed, effect, signal, type ReadonlySignal } from "@preact/signals";

import { kept } from "../state/kept.ts";

export type Locale = "en" | "zh";

export const LOCALES: readonly Locale[] = ["en", "zh"];

export const locale = signal<Locale>(kept.read("locale", LOCALES) ?? ofBrowser(navigator.languages));

effect(() => {
  document.documentElement.lang = locale.value === "zh" ? "zh-CN" : "en";
});

/** Chosen by a person: it stays. */
export function chooseLocale(chosen: Locale): void {
  kept.write("locale", chosen);
  locale.value = chosen;
}

export function ofBrowser(languages: readonly string[]): Locale {
  const known = languages.find((language) => /^(en|zh)\b/i.test(language));
  return known?.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** The words of a view in both languages; the second has exactly the keys of the first. */
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

/** Thousand-millionths of a unit of currency, as the server tells prices. */
export function formatPrice(nano: number): string {
  const value = nano / 1e9;
  return `$${value < 0.01 ? value.toFixed(6) : value.toFixed(4)}`;
}

/** The same in a currency by its code, in cents and two more digits where it is less than one of it. */
export function formatMoney(nano: number, currency: string): string {
  const value = nano / 1e9;
  const digits = Math.abs(value) < 1 ? 4 : 2;
  const number = new Intl.NumberFormat(locale.value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${number.format(value)} ${currency}`;
}

export function formatSeconds(milliseconds: number): string {
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
