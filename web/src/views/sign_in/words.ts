import { bilingual } from "../../language/language.ts";

export const words = bilingual(
  {
    title: "Recto",
    about: "An agent server that shows what the model saw, and why.",
    label: "Token or key",
    where:
      "The token is printed where the server was started, and kept in the file “token” of its data folder (recto-data). Where API keys or JWTs are set, it is one of these.",
    refused: "The server does not take that token. Copy it again from where the server was started.",
    signIn: "Sign in",
    checking: "Signing in…",
    kept: "It is kept in this tab only, until you sign out or close it.",
    api: "The API, with examples",
  },
  {
    title: "Recto",
    about: "一个让你看清模型看到了什么、以及为什么的智能体服务器。",
    label: "令牌或密钥",
    where: "令牌会在服务器启动的地方打印出来，也保存在数据目录（recto-data）的 “token” 文件里。如果配置了 API 密钥或 JWT，就填其中之一。",
    refused: "服务器不接受这个令牌。请从服务器启动的地方重新复制。",
    signIn: "登录",
    checking: "正在登录…",
    kept: "它只保存在这个标签页里，直到你退出或关闭它。",
    api: "API 文档与示例",
  },
);
