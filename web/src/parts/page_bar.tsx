/** Title bar of a full page, with the way back to the conversation. */

import { bilingual } from "../language/language.ts";
import { currentThread } from "../state/current_thread.ts";
import { linkTo } from "../state/route.ts";
import { Icon, IconButton } from "./icon.tsx";

interface Props {
  readonly title: string;
  readonly onOpenList: () => void;
}

export function PageBar({ title, onOpenList }: Props) {
  const text = words.value;
  const thread = currentThread.value;
  return (
    <header class="page-bar">
      <IconButton icon="menu" label={text.openList} class="only-narrow" onClick={onOpenList} />
      <h1>{title}</h1>
      <a class="button" href={linkTo({ view: "chat", thread: thread.isNew.value ? null : thread.id })}>
        <Icon name="undo" />
        {text.back}
      </a>
    </header>
  );
}

const words = bilingual(
  { openList: "Open conversation list", back: "Back to conversation" },
  { openList: "打开对话列表", back: "返回对话" },
);
