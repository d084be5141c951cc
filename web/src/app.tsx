/** Page layout: the sign-in form, or the conversation list, the main view and the inspector. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { restart, credential, isDifferentUser } from "./api/credential.ts";
import { getMe } from "./api/routes.ts";
import { bilingual } from "./language/language.ts";
import { lazy } from "./parts/lazy.tsx";
import { loadAgents } from "./state/agents.ts";
import { currentThread, watchCurrentThread } from "./state/current_thread.ts";
import { go, route, type Route } from "./state/route.ts";
import { refreshThreads } from "./state/threads.ts";
import { notifyError } from "./state/toasts.ts";
import { Chat } from "./views/chat/chat.tsx";
import { Shortcuts } from "./views/help/shortcuts.tsx";
import { SignIn } from "./views/sign_in/sign_in.tsx";
import { ThreadList } from "./views/threads/thread_list.tsx";
import { Toasts } from "./views/toasts/toasts.tsx";

export const words = bilingual(
  { skip: "Skip to conversation", threads: "Conversations", inspector: "Model input" },
  { skip: "跳到对话", threads: "对话列表", inspector: "模型输入" },
);

const query = matchMedia("(max-width: 48rem)");

const isNarrow = signal(query.matches);

query.addEventListener("change", () => {
  isNarrow.value = query.matches;
});

const Inspector = lazy(async () => (await import("./views/inspector/inspector.tsx")).Inspector);
const PreviewPage = lazy(async () => (await import("./views/inspector/preview.tsx")).PreviewPage);
const SavingsPage = lazy(async () => (await import("./views/savings/savings.tsx")).SavingsPage);
const ProfilePage = lazy(async () => (await import("./views/profile/profile.tsx")).ProfilePage);

/** On narrow screens the conversation list is an overlay. */
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
      <Toasts />
    </>
  );
}

function Shell() {
  useEffect(() => {
    // A token from the URL signs in without the form, so check here for a different user.
    getMe().then(({ user }) => isDifferentUser(user) && restart(credential.value), () => undefined);
    loadAgents().catch(notifyError);
    void refreshThreads();
    return watchCurrentThread();
  }, []);
  const target = route.value;
  const isInspecting = target.view === "call" || target.view === "preview";
  const classes = ["shell", isInspecting && "with-inspector", isListOpen.value && "list-open"].filter(Boolean);
  return (
    <div class={classes.join(" ")}>
      <a class="skip-link button" href="#main" onClick={skipToMain}>
        {words.value.skip}
      </a>
      <aside aria-label={words.value.threads}>
        <ThreadList onSelect={closeList} />
      </aside>
      <main id="main" tabIndex={-1}>
        {target.view === "profile" ? (
          <ProfilePage onOpenList={openList} />
        ) : target.view === "savings" ? (
          <SavingsPage onOpenList={openList} />
        ) : (
          <Chat key={currentThread.value.id} thread={currentThread.value} onOpenList={openList} />
        )}
      </main>
      {isInspecting && (
        <section class="beside" aria-label={words.value.inspector} {...(isNarrow.value ? { role: "main" as const } : {})}>
          <InspectorPane target={target} />
        </section>
      )}
      <Shortcuts />
    </div>
  );
}

function InspectorPane({ target }: { target: Extract<Route, { view: "call" | "preview" }> }) {
  const close = () => go({ view: "chat", thread: currentThread.value.isNew.value ? null : target.thread });
  if (target.view === "preview") return <PreviewPage thread={target.thread ?? currentThread.value.id} onClose={close} />;
  return <Inspector thread={target.thread} run={target.run} n={target.n} onClose={close} />;
}

/** The router uses the URL hash, so move the focus instead of following the link. */
function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
