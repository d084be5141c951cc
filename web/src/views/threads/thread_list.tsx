/** The list of conversations: searched, grouped by day, older ones as one scrolls. */

import { useEffect, useRef } from "preact/hooks";

import { IconButton } from "../../parts/icon_button.tsx";
import { Icon } from "../../parts/icon.tsx";
import { startThread } from "../../state/current.ts";
import { isLoading, loadOlderThreads, nextCursor, search, searchThreads, threads } from "../../state/threads.ts";
import { SEARCH_ID, WRITE_ID } from "../help/shortcuts.tsx";
import { Preferences } from "../preferences/preferences.tsx";
import { byDay } from "./days.ts";
import { ThreadItem } from "./thread_item.tsx";
import "./threads.css";
import { words } from "./words.ts";

const PAUSE_MS = 200;

export function ThreadList({ onChosen }: { onChosen: () => void }) {
  const text = words.value;
  return (
    <>
      <header class="thread-head">
        <button
          type="button"
          class="new-thread"
          onClick={() => {
            startThread();
            onChosen();
            document.getElementById(WRITE_ID)?.focus();
          }}
        >
          <Icon name="plus" />
          {text.newThread}
        </button>
        <span class="only-narrow">
          <IconButton icon="close" label={text.cancel} onClick={onChosen} />
        </span>
      </header>
      <Search />
      <nav class="threads" aria-label={text.list}>
        {byDay(threads.value, new Date()).map(({ day, rows }) => (
          <section key={day} aria-label={text[day]}>
            <h2>{text[day]}</h2>
            <ul>
              {rows.map((row) => (
                <ThreadItem key={row.id} row={row} onChosen={onChosen} />
              ))}
            </ul>
          </section>
        ))}
        <End />
      </nav>
      <Preferences onChosen={onChosen} />
    </>
  );
}

function Search() {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  return (
    <search class="thread-search">
      <input
        id={SEARCH_ID}
        type="search"
        placeholder={words.value.search}
        aria-label={words.value.search}
        defaultValue={search.value}
        onInput={(event) => {
          const found = event.currentTarget.value.trim();
          clearTimeout(timer.current);
          timer.current = setTimeout(() => void searchThreads(found), PAUSE_MS);
        }}
      />
    </search>
  );
}

/** What stands at the end: more of them, or why there are none. */
function End() {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!end.current) return undefined;
    const watcher = new IntersectionObserver((seen) => {
      if (seen.some((entry) => entry.isIntersecting)) void loadOlderThreads();
    });
    watcher.observe(end.current);
    return () => watcher.disconnect();
  }, [nextCursor.value]);
  const text = words.value;
  return (
    <div ref={end} class="thread-end soft small">
      {isLoading.value && nextCursor.value === undefined && <p>{text.loading}</p>}
      {!isLoading.value && !threads.value.length && <p>{search.value ? text.noneFound : text.none}</p>}
      {nextCursor.value && (
        <button type="button" class="plain" onClick={() => void loadOlderThreads()}>
          {text.more}
        </button>
      )}
    </div>
  );
}
