/** Code block with syntax colors and a copy button. */

import { useMemo } from "preact/hooks";

import { bilingual } from "../../language/language.ts";
import { CopyButton } from "../clipboard.tsx";
import { highlight } from "./highlight.ts";
import "./markdown.css";

export function CodeBlock({ code, language }: { code: string; language: string }) {
  const tokens = useMemo(() => highlight(code, language), [code, language]);
  return (
    <div class="code-block">
      <div class="code-bar">
        <span>{language}</span>
        <CopyButton class="copy-code plain" hasIcon={false} text={() => code} />
      </div>
      <pre tabIndex={0} role="region" aria-label={language || codeWords.value.code}>
        <code>
          {tokens.map(({ text, kind }, index) =>
            kind ? (
              <span key={index} class={`code-${kind}`}>
                {text}
              </span>
            ) : (
              text
            ),
          )}
        </code>
      </pre>
    </div>
  );
}

const codeWords = bilingual({ code: "Code" }, { code: "代码" });
