/** The text of a part: byte for byte as it was sent, and as it was said before anything was left out. */

import { useEffect } from "preact/hooks";

import type { Span } from "../../../api/calls.ts";
import { formatNumber } from "../../../language/language.ts";
import { CopyButton } from "../copy_button.tsx";
import type { Later } from "../later.ts";
import type { Original } from "./originals.ts";
import { readable, textAt } from "./page_bytes.ts";
import { Paged } from "./paged.tsx";
import { isReadable } from "../state.ts";
import { words } from "../words.ts";

export function SentText({ span, bytes }: { span: Span | null; bytes: Later<Uint8Array> }) {
  const text = words.value;
  if (span === null) return <p class="part-text soft small">{text.nothingSent}</p>;
  return (
    <div class="part-text">
      <div class="part-text-bar">
        <span class="soft small">
          {text.asSent}, {text.bytes(formatNumber(span[0]), formatNumber(span[1]))}
        </span>
        <button
          type="button"
          class="quiet"
          aria-pressed={isReadable.value}
          onClick={() => {
            isReadable.value = !isReadable.value;
          }}
        >
          {text.readable}
        </button>
        {bytes.value.value && <CopyButton text={() => shownText(bytes.value.value as Uint8Array, span)} />}
      </div>
      <Bytes span={span} bytes={bytes} />
    </div>
  );
}

function Bytes({ span, bytes }: { span: Span; bytes: Later<Uint8Array> }) {
  useEffect(() => bytes.ask(), [bytes]);
  if (bytes.problem.value) return <p class="problem small">{bytes.problem.value}</p>;
  const all = bytes.value.value;
  if (all === null) return <p class="soft small">{words.value.loading}</p>;
  return <pre tabIndex={0}>{shownText(all, span)}</pre>;
}

function shownText(bytes: Uint8Array, span: Span): string {
  const text = textAt(bytes, span);
  return isReadable.value ? readable(text) : text;
}

export function OriginalText({ originals }: { originals: readonly Original[] }) {
  const text = words.value;
  if (!originals.length) return <p class="part-text soft small">{text.originalGone}</p>;
  return (
    <div class="part-text original">
      <p class="soft small">{text.originalOf}</p>
      <ul>
        <Paged items={originals}>
          {(original) => (
            <li key={original.id}>
              {originals.length > 1 && (
                <p class="small">{text.roles[original.role === "tool" ? "results" : original.role]}</p>
              )}
              <pre tabIndex={0}>{original.text}</pre>
            </li>
          )}
        </Paged>
      </ul>
    </div>
  );
}
