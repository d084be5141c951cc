/** What folding saved, by rule and by agent, and what broke prompt caches, over a period that is chosen. */

import { useEffect, useMemo } from "preact/hooks";

import { Icon } from "../../parts/icon.tsx";
import { IconButton } from "../../parts/icon_button.tsx";
import { current } from "../../state/current.ts";
import { linkTo } from "../../state/route.ts";
import { Choices } from "./choices.tsx";
import "./savings.css";
import { SavingsState } from "./savings_state.ts";
import { SavingsTables } from "./savings_tables.tsx";
import { words } from "./words.ts";

export function SavingsPage({ onOpenList }: { onOpenList: () => void }) {
  const state = useMemo(() => new SavingsState(), []);
  useEffect(() => void state.load(), []);
  const text = words.value;
  return (
    <>
      <Bar onOpenList={onOpenList} />
      <div class="savings-scroll">
        <div class="savings">
          <p>{text.about}</p>
          <Choices state={state} />
          <div aria-live="polite">
            {state.problem.value !== null ? (
              <div class="problem" role="alert">
                <p>{state.problem.value}</p>
                <button type="button" onClick={() => void state.load()}>
                  {text.again}
                </button>
              </div>
            ) : state.savings.value === null ? (
              <p class="soft">{text.loading}</p>
            ) : (
              <SavingsTables savings={state.savings.value} />
            )}
          </div>
        </div>
      </div>
    </>
  );
}

function Bar({ onOpenList }: { onOpenList: () => void }) {
  const text = words.value;
  const thread = current.value;
  return (
    <header class="page-bar">
      <IconButton icon="menu" label={text.list} class="only-narrow" onClick={onOpenList} />
      <h1>{text.title}</h1>
      <a class="button" href={linkTo({ view: "chat", thread: thread.isNew.value ? null : thread.id })}>
        <Icon name="undo" />
        {text.back}
      </a>
    </header>
  );
}
