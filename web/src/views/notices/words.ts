import { bilingual } from "../../language/language.ts";

export const words = bilingual({ dismiss: "Dismiss" }, { dismiss: "关闭" });
