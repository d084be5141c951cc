/** Asks for a token or key, and says where to find it. One that the server refuses is told as such. */

import { useSignal } from "@preact/signals";

import { beginAnew, isSomebodyElse, signIn, wasRefused } from "../../api/credential.ts";
import { ApiError } from "../../api/request.ts";
import { getMe } from "../../api/routes.ts";
import { LanguageChoice } from "../preferences/language_choice.tsx";
import "./sign_in.css";
import { words } from "./words.ts";

export function SignIn() {
  const token = useSignal("");
  const isChecking = useSignal(false);
  const problem = useSignal<string | null>(null);
  const text = words.value;

  async function check(event: Event): Promise<void> {
    event.preventDefault();
    const given = token.value.trim();
    if (!given) return;
    problem.value = null;
    isChecking.value = true;
    try {
      const { user } = await getMe(given);
      if (isSomebodyElse(user)) beginAnew(given);
      else signIn(given);
    } catch (error) {
      wasRefused.value = error instanceof ApiError && error.status === 401;
      if (!wasRefused.value) problem.value = error instanceof ApiError ? error.detail : String(error);
    }
    isChecking.value = false;
  }

  return (
    <main class="sign-in">
      <form onSubmit={(event) => void check(event)}>
        <h1>{text.title}</h1>
        <p class="soft">{text.about}</p>
        {wasRefused.value && (
          <p class="problem" role="alert">
            {text.refused}
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
          {text.where} {text.kept}
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
