/** A view whose code is loaded when it is first shown: what opens the page stays small. */

import { useSignal } from "@preact/signals";
import { h, type ComponentType } from "preact";
import { useEffect } from "preact/hooks";

import { words } from "./words.ts";

/** The view itself once it is there. Where it is not to be had, the server may have a newer page: it is loaded again. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return function Lazy(props: Props) {
    const View = useSignal(loaded);
    const isMissing = useSignal(false);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (view) => {
          loaded = view;
          View.value = view;
        },
        () => {
          isMissing.value = true;
        },
      );
    }, []);
    if (View.value) return h(View.value, props);
    return isMissing.value ? <Missing /> : <p class="lazy soft">{words.value.loading}</p>;
  };
}

function Missing() {
  return (
    <p class="lazy problem" role="alert">
      {words.value.missing}{" "}
      <button type="button" onClick={() => location.reload()}>
        {words.value.reload}
      </button>
    </p>
  );
}
