/** Copying text to the clipboard. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { bilingual } from "../language/language.ts";
import { notify } from "../state/toasts.ts";
import { Icon } from "./icon.tsx";

/** Copy text and return true on success. Browsers block the clipboard API on plain HTTP, so fall back to a selection. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text);
  }
}

function copySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    area.remove();
  }
}

const CONFIRM_MS = 2_000;

interface Props {
  readonly label?: string;
  readonly class?: string;
  readonly hasIcon?: boolean;
  readonly text: () => string;
}

export function CopyButton({ label, class: className = "quiet", hasIcon = true, text }: Props) {
  const isCopied = useSignal(false);
  useEffect(() => {
    if (!isCopied.value) return;
    const timer = setTimeout(() => {
      isCopied.value = false;
    }, CONFIRM_MS);
    return () => clearTimeout(timer);
  }, [isCopied.value]);

  async function copy(): Promise<void> {
    isCopied.value = await copyText(text());
    if (!isCopied.value) notify(copyWords.value.failed);
  }

  return (
    <button type="button" class={className} onClick={() => void copy()}>
      {hasIcon && <Icon name={isCopied.value ? "check" : "copy"} />}
      <span aria-live="polite">{isCopied.value ? copyWords.value.copied : (label ?? copyWords.value.copy)}</span>
    </button>
  );
}

export const copyWords = bilingual(
  {
    copy: "Copy",
    copied: "Copied",
    failed: "Couldn't copy: the browser blocked clipboard access. Select the text and copy it manually.",
  },
  {
    copy: "复制",
    copied: "已复制",
    failed: "复制失败：浏览器阻止了剪贴板访问。请选中文字后手动复制。",
  },
);
