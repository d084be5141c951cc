import { bilingual } from "../language/language.ts";

export const words = bilingual(
  {
    unreached: "The server cannot be reached.",
    cut: "The answer was cut off.",
    answered: (status: number) => `The server answered ${status}.`,
  },
  {
    unreached: "无法连接服务器。",
    cut: "回答被中途切断了。",
    answered: (status: number) => `服务器返回了 ${status}。`,
  },
);
