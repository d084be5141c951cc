/** What is told to people beside the conversation: files that could not be used, how far something is. */

import type { Progress } from "../../api/agui.ts";
import type { NoteMessage } from "../../conversation/messages.ts";
import { formatNumber } from "../../language/language.ts";
import { Icon } from "../../parts/icon.tsx";
import { words } from "./words.ts";

export function Note({ message }: { message: NoteMessage }) {
  switch (message.kind) {
    case "recto.attachments":
      return <LeftOut notes={message.content["notes"]} />;
    case "recto.progress":
      return <ProgressLine progress={message.content as unknown as Progress} />;
    default:
      return null;
  }
}

function LeftOut({ notes }: { notes: unknown }) {
  const told = Array.isArray(notes) ? notes.filter((note) => typeof note === "string") : [];
  if (!told.length) return null;
  return (
    <div class="note">
      <Icon name="warning" />
      <div>
        <p>{words.value.leftOut}</p>
        <ul>
          {told.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function ProgressLine({ progress }: { progress: Progress }) {
  if (progress.status === "ended") return null;
  const { label, done, total, unit } = progress;
  const far = total === undefined ? formatNumber(done) : `${formatNumber(done)} / ${formatNumber(total)}`;
  return (
    <div class="progress-line small soft">
      <span>
        {label} · {far} {unit}
      </span>
      <progress aria-label={label} {...(total === undefined ? {} : { value: done, max: total })} />
    </div>
  );
}
