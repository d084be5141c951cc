/** Conversation list with search, grouped by day. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { ThreadRow } from "../../api/routes.ts";
import { bilingual } from "../../language/language.ts";
import { SEARCH_ID, WRITE_ID } from "../../parts/focus.ts";
import { Icon, IconButton } from "../../parts/icon.tsx";
import { currentThread, startThread } from "../../state/current_thread.ts";
import { go, linkTo } from "../../state/route.ts";
import {
  DELETE_MS,
  isLoading,
  loadOlderThreads,
  nextCursor,
  remove,
  rename,
  search,
  searchThreads,
  threads,
} from "../../state/threads.ts";
import { notify } from "../../state/toasts.ts";
import { Preferences } from "../preferences/preferences.tsx";
import "./threads.css";

const PAUSE_MS = 200;

export function ThreadList({ onSelect }: { onSelect: () => void }) {
  const text = words.value;
  return (
    <>
      <header class="thread-head">
        <button
          type="button"
          class="new-thread"
          onClick={() => {
            startThread();
            onSelect();
            document.getElementById(WRITE_ID)?.focus();
          }}
        >
          <Icon name="plus" />
          {text.newThread}
        </button>
        <span class="only-narrow">
          <IconButton icon="close" label={text.close} onClick={onSelect} />
        </span>
      </header>
      <Search />
      <nav class="threads" aria-label={text.list}>
        {byDay(threads.value, new Date()).map(({ day, rows }) => (
          <section key={day} aria-label={text[day]}>
            <h2>{text[day]}</h2>
            <ul>
              {rows.map((row) => (
                <ThreadItem key={row.id} row={row} onSelect={onSelect} />
              ))}
            </ul>
          </section>
        ))}
        <End />
      </nav>
      <Preferences onSelect={onSelect} />
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
          const text = event.currentTarget.value.trim();
          clearTimeout(timer.current);
          timer.current = setTimeout(() => void searchThreads(text), PAUSE_MS);
        }}
      />
    </search>
  );
}

/** End of the list: a loading or empty state, or older conversations. */
function End() {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!end.current) return undefined;
    const watcher = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) void loadOlderThreads();
    });
    watcher.observe(end.current);
    return () => watcher.disconnect();
  }, [nextCursor.value]);
  const text = words.value;
  return (
    <div ref={end} class="thread-end soft small">
      {isLoading.value && nextCursor.value === undefined && <p>{text.loading}</p>}
      {!isLoading.value && !threads.value.length && <p>{search.value ? text.noMatches : text.none}</p>}
      {nextCursor.value && (
        <button type="button" class="plain" onClick={() => void loadOlderThreads()}>
          {text.more}
        </button>
      )}
    </div>
  );
}

type Day = "today" | "yesterday" | "week" | "older";

interface DayGroup {
  readonly day: Day;
  readonly rows: readonly ThreadRow[];
}

const DAYS: readonly Day[] = ["today", "yesterday", "week", "older"];

function byDay(rows: readonly ThreadRow[], now: Date): DayGroup[] {
  const groups = DAYS.map((day) => ({ day, rows: rows.filter((row) => dayOf(new Date(row.updated), now) === day) }));
  return groups.filter((group) => group.rows.length);
}

function dayOf(moment: Date, now: Date): Day {
  const days = Math.round((startOfDay(now) - startOfDay(moment)) / 86_400_000);
  if (days <= 0) return "today";
  if (days === 1) return "yesterday";
  return days < 7 ? "week" : "older";
}

function startOfDay(moment: Date): number {
  return new Date(moment.getFullYear(), moment.getMonth(), moment.getDate()).getTime();
}

function ThreadItem({ row, onSelect }: { row: ThreadRow; onSelect: () => void }) {
  const isRenaming = useSignal(false);
  const text = words.value;
  const title = row.title ?? text.untitled;
  const isCurrent = currentThread.value.id === row.id;
  if (isRenaming.value) {
    return (
      <li>
        <TitleForm
          title={title}
          onEnd={(newTitle) => {
            isRenaming.value = false;
            if (newTitle && newTitle !== title) void rename(row.id, newTitle);
          }}
        />
      </li>
    );
  }
  return (
    <li class={isCurrent ? "current" : ""}>
      <a
        href={linkTo({ view: "chat", thread: row.id })}
        title={title}
        {...(isCurrent ? { "aria-current": "page" } : {})}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          go({ view: "chat", thread: row.id });
          onSelect();
        }}
      >
        {row.activeRun && <span class="running-dot" role="img" aria-label={text.working} />}
        <span class="thread-title">{title}</span>
      </a>
      <span class="thread-actions">
        <IconButton
          icon="edit"
          label={`${text.rename}: ${title}`}
          onClick={() => {
            isRenaming.value = true;
          }}
        />
        <IconButton icon="trash" label={`${text.remove}: ${title}`} onClick={() => removeWithUndo(row.id, title)} />
      </span>
    </li>
  );
}

function removeWithUndo(id: string, title: string): void {
  const wasCurrent = currentThread.value.id === id;
  const undo = remove(id);
  if (wasCurrent) startThread();
  const act = () => {
    undo();
    if (wasCurrent) go({ view: "chat", thread: id });
  };
  notify(words.value.deleted(title), { label: words.value.undo, act }, DELETE_MS);
}

function TitleForm({ title, onEnd }: { title: string; onEnd: (title: string | null) => void }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.select(), []);
  return (
    <form
      class="title-form"
      onSubmit={(event) => {
        event.preventDefault();
        onEnd(input.current?.value.trim() || null);
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        onEnd(null);
      }}
    >
      <input ref={input} aria-label={words.value.title} defaultValue={title} maxLength={200} required />
      <IconButton icon="check" label={words.value.save} onClick={() => onEnd(input.current?.value.trim() || null)} />
    </form>
  );
}

export const words = bilingual(
  {
    newThread: "New conversation",
    list: "Conversations",
    search: "Search conversations",
    none: "No conversations yet. Send a message to start one.",
    noMatches: "No conversations match your search.",
    more: "Show older",
    loading: "Loading…",
    today: "Today",
    yesterday: "Yesterday",
    week: "Previous 7 days",
    older: "Older",
    untitled: "Untitled",
    working: "Running",
    rename: "Rename",
    remove: "Delete",
    title: "Title",
    save: "Save",
    close: "Close list",
    deleted: (title: string) => `“${title}” deleted`,
    undo: "Undo",
  },
  {
    newThread: "新对话",
    list: "对话列表",
    search: "搜索对话",
    none: "还没有对话。发送一条消息即可开始。",
    noMatches: "没有匹配的对话。",
    more: "显示更早的对话",
    loading: "正在加载…",
    today: "今天",
    yesterday: "昨天",
    week: "过去 7 天",
    older: "更早",
    untitled: "未命名",
    working: "运行中",
    rename: "重命名",
    remove: "删除",
    title: "标题",
    save: "保存",
    close: "关闭列表",
    deleted: (title: string) => `已删除“${title}”`,
    undo: "撤销",
  },
);
