import { bilingual } from "../../language/language.ts";

export const words = bilingual(
  {
    language: "Language",
    theme: "Colours",
    themes: { system: "System", light: "Light", dark: "Dark" },
    profile: "What is kept of you",
    savings: "What folding saved",
    shortcuts: "Keyboard shortcuts",
    signOut: "Sign out",
  },
  {
    language: "语言",
    theme: "配色",
    themes: { system: "系统", light: "浅色", dark: "深色" },
    profile: "关于你的资料",
    savings: "折叠节省了多少",
    shortcuts: "键盘快捷键",
    signOut: "退出登录",
  },
);

/** Each language by its own name, whatever the page speaks. */
export const NAMES = { en: "English", zh: "中文" } as const;
