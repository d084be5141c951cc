import { bilingual } from "../language/language.ts";

export const words = bilingual(
  {
    loading: "Loading…",
    missing: "This part of the page could not be loaded. The server may have a newer one.",
    reload: "Load the page again",
  },
  {
    loading: "正在加载…",
    missing: "页面的这一部分无法加载。服务器上可能有更新的页面。",
    reload: "重新加载页面",
  },
);
