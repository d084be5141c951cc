/** Footer of the conversation list: language, theme, pages and sign-out. */

import { effect, signal } from "@preact/signals";

import { signOut } from "../../api/credential.ts";
import { bilingual, chooseLocale, locale, LOCALES } from "../../language/language.ts";
import { IconButton } from "../../parts/icon.tsx";
import { readSetting, writeSetting } from "../../state/local_storage.ts";
import { go } from "../../state/route.ts";
import { showShortcuts } from "../help/shortcuts.tsx";
import "./preferences.css";

export type Theme = "system" | "light" | "dark";

const THEMES: readonly Theme[] = ["system", "light", "dark"];

export const theme = signal<Theme>(readSetting("theme", THEMES) ?? "system");

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset["theme"];
  else root.dataset["theme"] = theme.value;
});

function chooseTheme(selected: Theme): void {
  writeSetting("theme", selected);
  theme.value = selected;
}

export function Preferences({ onSelect }: { onSelect: () => void }) {
  const text = words.value;
  return (
    <footer class="preferences">
      <LanguageChoice />
      <select
        class="choice"
        aria-label={text.theme}
        value={theme.value}
        onChange={(event) => {
          const selected = THEMES.find((option) => option === event.currentTarget.value);
          if (selected) chooseTheme(selected);
        }}
      >
        {THEMES.map((option) => (
          <option key={option} value={option}>
            {text.themes[option]}
          </option>
        ))}
      </select>
      <IconButton
        icon="person"
        label={text.profile}
        onClick={() => {
          go({ view: "profile" });
          onSelect();
        }}
      />
      <IconButton
        icon="compact"
        label={text.savings}
        onClick={() => {
          go({ view: "savings" });
          onSelect();
        }}
      />
      <IconButton icon="keyboard" label={text.shortcuts} onClick={showShortcuts} />
      <IconButton icon="leave" label={text.signOut} onClick={() => void signOut()} />
    </footer>
  );
}

export function LanguageChoice() {
  return (
    <select
      class="choice"
      aria-label={words.value.language}
      value={locale.value}
      onChange={(event) => {
        const selected = LOCALES.find((option) => option === event.currentTarget.value);
        if (selected) chooseLocale(selected);
      }}
    >
      {LOCALES.map((option) => (
        <option key={option} value={option} lang={option}>
          {NAMES[option]}
        </option>
      ))}
    </select>
  );
}

export const words = bilingual(
  {
    language: "Language",
    theme: "Theme",
    themes: { system: "System", light: "Light", dark: "Dark" },
    profile: "Your data",
    savings: "Savings",
    shortcuts: "Keyboard shortcuts",
    signOut: "Sign out",
  },
  {
    language: "语言",
    theme: "主题",
    themes: { system: "跟随系统", light: "浅色", dark: "深色" },
    profile: "你的数据",
    savings: "折叠节省",
    shortcuts: "键盘快捷键",
    signOut: "退出登录",
  },
);

/** Language names in their own language. They are the same in every locale. */
const NAMES = { en: "English", zh: "中文" } as const;
