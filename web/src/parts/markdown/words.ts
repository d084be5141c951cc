import { bilingual } from "../../language/language.ts";

export const words = bilingual(
  { copy: "Copy", copied: "Copied", code: "Code" },
  { copy: "复制", copied: "已复制", code: "代码" },
);
