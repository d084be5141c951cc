/** Sign-in form for a token or API key. */

import { useSignal } from "@preact/signals";

import { isDifferentUser, isTokenRejected, restart, signIn } from "../../api/credential.ts";
import { ApiError } from "../../api/request.ts";
import { getMe } from "../../api/routes.ts";
import { bilingual } from "../../language/language.ts";
import { LanguageChoice } from "../preferences/preferences.tsx";
import "./sign_in.css";

export function SignIn() {
  const token = useSignal("");
  const isChecking = useSignal(false);
  const problem = useSignal<string | null>(null);
  const text = words.value;

  async function check(event: Event): Promise<void> {
    event.preventDefault();
    const value = token.value.trim();
    if (!value) return;
    problem.value = null;
    isChecking.value = true;
    try {
      const { user } = await getMe(value);
      if (isDifferentUser(user)) restart(value);
      else signIn(value);
    } catch (error) {
      isTokenRejected.value = error instanceof ApiError && error.status === 401;
      if (!isTokenRejected.value) problem.value = error instanceof ApiError ? error.detail : String(error);
    }
    isChecking.value = false;
  }

  return (
    <main class="sign-in">
      <form onSubmit={(event) => void check(event)}>
        <h1>{text.title}</h1>
        <p class="soft">{text.about}</p>
        {isTokenRejected.value && (
          <p class="problem" role="alert">
            {text.rejected}
          </p>
        )}
        {problem.value && (
          <p class="problem" role="alert">
            {problem.value}
          </p>
        )}
        <label for="token">{text.label}</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          required
          value={token.value}
          aria-describedby="token-where"
          onInput={(event) => {
            token.value = event.currentTarget.value;
          }}
        />
        <p id="token-where" class="soft small">
          {text.where} {text.storage}
        </p>
        <button type="submit" class="primary" disabled={isChecking.value}>
          {isChecking.value ? text.checking : text.signIn}
        </button>
        <footer>
          <LanguageChoice />
          <a href="/docs">{text.api}</a>
        </footer>
      </form>
    </main>
  );
}

export const words = bilingual(
  {
    title: "Recto",
    about: "An agent server that shows exactly what each model call contains, and why.",
    label: "Token or API key",
    where:
      "The server prints its token at startup and stores it in the file “token” in its data folder (recto-data). If the server uses API keys or JWTs, enter one of those.",
    rejected: "The server rejected this token. Copy it again from the server's startup output.",
    signIn: "Sign in",
    checking: "Signing in…",
    storage: "This tab stores it until you sign out or close the tab.",
    api: "API reference",
  },
  {
    title: "Recto",
    about: "一个智能体服务器，让你看清每次模型调用的完整内容及其原因。",
    label: "令牌或 API 密钥",
    where:
      "服务器启动时会输出令牌，并保存在数据目录（recto-data）的“token”文件中。如果服务器使用 API 密钥或 JWT，请输入其中之一。",
    rejected: "令牌无效。请从服务器的启动输出中重新复制。",
    signIn: "登录",
    checking: "正在登录…",
    storage: "令牌只保存在当前标签页，退出登录或关闭标签页后即清除。",
    api: "API 文档",
  },
);
