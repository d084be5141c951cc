/** Code, letter for letter, with colours and a button that copies it. */

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import { copyText } from "../clipboard.ts";
import { highlight } from "./highlight.ts";
import "./markdown.css";
import { words } from "./words.ts";

const COPIED_MS = 1_500;

export function CodeBlock({ code, language }: { code: string; language: string }) {
  const isCopied = useSignal(false);
  const stretches = useMemo(() => highlight(code, language), [code, language]);
  const text = words.value;

  async function copy(): Promise<void> {
    if (!(await copyText(code))) return;
    isCopied.value = true;
    setTimeout(() => {
      isCopied.value = false;
    }, COPIED_MS);
  }

  return (
    <div class="code-block">
      <div class="code-bar">
        <span>{language}</span>
        <button type="button" class="copy-code plain" onClick={() => void copy()}>
          {isCopied.value ? text.copied : text.copy}
        </button>
      </div>
      <pre tabIndex={0} role="region" aria-label={language || text.code}>
        <code>
          {stretches.map(({ text: shown, kind }, place) =>
            kind ? (
              <span key={place} class={`code-${kind}`}>
                {shown}
              </span>
            ) : (
              shown
            ),
          )}
        </code>
      </pre>
    </div>
  );
}
