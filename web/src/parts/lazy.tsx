/** Components whose code loads on first use, which keeps the initial bundle small. */

import { useSignal } from "@preact/signals";
import { h, type ComponentType } from "preact";
import { useEffect } from "preact/hooks";

import { bilingual } from "../language/language.ts";

/**
 * Return a component that loads on first render. If that fails, it offers to reload the page, which may be outdated.
 */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return function Lazy(props: Props) {
    const View = useSignal(loaded);
    const hasFailed = useSignal(false);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (view) => {
          loaded = view;
          View.value = view;
        },
        () => {
          hasFailed.value = true;
        },
      );
    }, []);
    if (View.value) return h(View.value, props);
    return hasFailed.value ? <LoadError /> : <p class="lazy soft">{words.value.loading}</p>;
  };
}

function LoadError() {
  return (
    <p class="lazy problem" role="alert">
      {words.value.failed}{" "}
      <button type="button" onClick={() => location.reload()}>
        {words.value.reload}
      </button>
    </p>
  );
}

const words = bilingual(
  {
    loading: "Loading…",
    failed: "Couldn't load this view. The server may have a newer version of the page.",
    reload: "Reload page",
  },
  {
    loading: "正在加载…",
    failed: "无法加载此视图。服务器上的页面可能已更新。",
    reload: "重新加载页面",
  },
);
