/** The request itself: its body, and a command that makes it again. Neither has a secret in it. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { formatNumber } from "../../../language/language.ts";
import { CopyButton } from "../copy_button.tsx";
import { words } from "./figure_words.ts";
import type { Later } from "../later.ts";
import { pretty, textOf } from "../parts/page_bytes.ts";
import { words as common } from "../words.ts";

/** Characters that are shown at once: of a page of megabytes the beginning is enough until somebody wants all. */
const AT_ONCE = 200_000;

export function RawRequest({ bytes }: { bytes: Later<Uint8Array> }) {
  const text = words.value;
  return (
    <Source title={text.request} about={text.requestAbout} source={bytes}>
      {(found: Uint8Array) => <Code name="raw-request" text={pretty(textOf(found))} />}
    </Source>
  );
}

export function CurlCommand({ curl }: { curl: Later<string> }) {
  const text = words.value;
  return (
    <Source title={text.curl} about={text.curlAbout} source={curl}>
      {(found: string) => <Code name="curl" text={found} />}
    </Source>
  );
}

interface SourceProps<Value> {
  readonly title: string;
  readonly about: string;
  readonly source: Later<Value>;
  readonly children: (found: Value) => ComponentChildren;
}

function Source<Value>({ title, about, source, children }: SourceProps<Value>) {
  useEffect(() => source.ask(), [source]);
  const found = source.value.value;
  return (
    <section class="source">
      <h2>{title}</h2>
      <p class="soft small">{about}</p>
      {source.problem.value && <p class="problem small">{source.problem.value}</p>}
      {found === null && !source.problem.value && <p class="soft small">{common.value.loading}</p>}
      {found !== null && children(found)}
    </section>
  );
}

function Code({ name, text }: { name: string; text: string }) {
  const isWrapped = useSignal(true);
  const isWhole = useSignal(text.length <= AT_ONCE);
  return (
    <>
      <div class="source-bar">
        <CopyButton text={() => text} />
        <label class="small">
          <input
            type="checkbox"
            checked={isWrapped.value}
            onChange={(event) => {
              isWrapped.value = event.currentTarget.checked;
            }}
          />{" "}
          {words.value.wrap}
        </label>
      </div>
      <pre class={isWrapped.value ? `${name} wrapped` : name} tabIndex={0}>
        {isWhole.value ? text : text.slice(0, AT_ONCE)}
      </pre>
      {!isWhole.value && (
        <button
          type="button"
          onClick={() => {
            isWhole.value = true;
          }}
        >
          {words.value.whole(formatNumber(text.length))}
        </button>
      )}
    </>
  );
}
