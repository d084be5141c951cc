/** Copies a text, and says that it did. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { copyText } from "../../parts/clipboard.ts";
import { Icon } from "../../parts/icon.tsx";
import { notify } from "../../state/notices.ts";
import { words } from "./words.ts";

const SAID_MS = 2_000;

interface Props {
  readonly label?: string;
  readonly text: () => string;
}

export function CopyButton({ label, text }: Props) {
  const isCopied = useSignal(false);
  useEffect(() => {
    if (!isCopied.value) return;
    const timer = setTimeout(() => {
      isCopied.value = false;
    }, SAID_MS);
    return () => clearTimeout(timer);
  }, [isCopied.value]);

  async function copy(): Promise<void> {
    isCopied.value = await copyText(text());
    if (!isCopied.value) notify(words.value.notCopied);
  }

  return (
    <button type="button" class="quiet" onClick={() => void copy()}>
      <Icon name={isCopied.value ? "check" : "copy"} />
      <span aria-live="polite">{isCopied.value ? words.value.copied : (label ?? words.value.copy)}</span>
    </button>
  );
}
