/** The page: signing in, then the list of threads, the conversation, and beside it what the model saw. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { beginAnew, credential, isSomebodyElse } from "./api/credential.ts";
import { getMe } from "./api/routes.ts";
import { lazy } from "./parts/lazy.tsx";
import { loadAgents } from "./state/agents.ts";
import { current, watchCurrent } from "./state/current.ts";
import { isNarrow } from "./state/narrow.ts";
import { notifyError } from "./state/notices.ts";
import { go, route, type Route } from "./state/route.ts";
import { refreshThreads } from "./state/threads.ts";
import { Chat } from "./views/chat/chat.tsx";
import { Shortcuts } from "./views/help/shortcuts.tsx";
import { Notices } from "./views/notices/notices.tsx";
import { SignIn } from "./views/sign_in/sign_in.tsx";
import { ThreadList } from "./views/threads/thread_list.tsx";
import { words } from "./words.ts";

const Inspector = lazy(async () => (await import("./views/inspector/inspector.tsx")).Inspector);
const PreviewPage = lazy(async () => (await import("./views/inspector/preview.tsx")).PreviewPage);
const SavingsPage = lazy(async () => (await import("./views/savings/savings.tsx")).SavingsPage);
const ProfilePage = lazy(async () => (await import("./views/profile/profile.tsx")).ProfilePage);

/** On a phone the list lies over the conversation. */
const isListOpen = signal(false);
const openList = () => {
  isListOpen.value = true;
};
const closeList = () => {
  isListOpen.value = false;
};

export function App() {
  return (
    <>
      {credential.value === null ? <SignIn /> : <Shell key={credential.value} />}
      <Notices />
    </>
  );
}

function Shell() {
  useEffect(() => {
    // Who this is is told here too, for tokens that came by the address.
    getMe().then(({ user }) => isSomebodyElse(user) && beginAnew(credential.value), () => undefined);
    loadAgents().catch(notifyError);
    void refreshThreads();
    return watchCurrent();
  }, []);
  const shown = route.value;
  const isInspecting = shown.view === "call" || shown.view === "preview";
  const classes = ["shell", isInspecting && "with-inspector", isListOpen.value && "list-open"].filter(Boolean);
  return (
    <div class={classes.join(" ")}>
      <a class="skip-link button" href="#main" onClick={skipToMain}>
        {words.value.skip}
      </a>
      <aside aria-label={words.value.threads}>
        <ThreadList onChosen={closeList} />
      </aside>
      <main id="main" tabIndex={-1}>
        {shown.view === "profile" ? (
          <ProfilePage onOpenList={openList} />
        ) : shown.view === "savings" ? (
          <SavingsPage onOpenList={openList} />
        ) : (
          <Chat key={current.value.id} thread={current.value} onOpenList={openList} />
        )}
      </main>
      {isInspecting && (
        <section class="beside" aria-label={words.value.inspector} {...(isNarrow.value ? { role: "main" as const } : {})}>
          <Beside shown={shown} />
        </section>
      )}
      <Shortcuts />
    </div>
  );
}

/** What the model saw in a call, or would see now. */
function Beside({ shown }: { shown: Extract<Route, { view: "call" | "preview" }> }) {
  const close = () => go({ view: "chat", thread: current.value.isNew.value ? null : shown.thread });
  if (shown.view === "preview") return <PreviewPage thread={shown.thread ?? current.value.id} onClose={close} />;
  return <Inspector thread={shown.thread} run={shown.run} n={shown.n} onClose={close} />;
}

/** Where a link would go is an address of ours: the focus goes instead. */
function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
