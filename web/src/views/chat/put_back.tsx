/** Asks whether files that changed since a message that was taken back should be as they were. */

import { restoreFiles } from "../../api/routes.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { notify, notifyError } from "../../state/notices.ts";
import { focusBox } from "../composer/focus.ts";
import { changedFiles, type ChangedFiles } from "./edit.ts";
import { words } from "./words.ts";

export function PutBack() {
  const asked = changedFiles.value;
  if (!asked) return null;
  const text = words.value;
  return (
    <Dialog title={text.putBackTitle} onClose={close}>
      <div class="put-back">
        <p>{text.putBackHelp}</p>
        <ul>
          {asked.files.map((file) => (
            <li key={file.path}>
              <code>{file.path}</code> <span class="soft">({text.changes[file.change]})</span>
            </li>
          ))}
        </ul>
        <div class="put-back-choices">
          <button type="button" onClick={close}>
            {text.leaveFiles}
          </button>
          <button type="button" class="primary" onClick={() => void putBack(asked).catch(notifyError)}>
            {text.putBack}
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function close(): void {
  changedFiles.value = null;
  focusBox();
}

async function putBack({ thread, messageId }: ChangedFiles): Promise<void> {
  close();
  const { restored, left } = await restoreFiles(thread.id, messageId);
  notify(words.value.wasPutBack(restored.length));
  if (left.length) notify(words.value.wasLeft(left.map(String).join(", ")));
}
