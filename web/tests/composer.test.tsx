/** Files of the next message: a failed upload, a pasted image, an agent that accepts none. */

import { beforeEach, expect, test, vi } from "vitest";

import type { Agent } from "../src/api/routes.ts";
import { OpenThread } from "../src/conversation/open_thread.ts";
import { Composer } from "../src/views/composer/composer.tsx";
import { draftOf } from "../src/views/composer/draft.ts";
import { DropArea } from "../src/views/composer/drop_area.tsx";
import { Toasts } from "../src/views/toasts/toasts.tsx";
import { buttons, draw, find, press, texts } from "./page.ts";

const fileInput = { documents: true, images: true, audio: false, video: false, endings: [], maxFiles: 5, maxBytes: null };
const AGENT = { name: "helper", fileInput, skills: [], forms: [] } as unknown as Agent;
let isReachable = true;
let forms: FormData[] = [];

/** Browser request that succeeds at once, or fails if `isReachable` is false. */
class InstantRequest {
  readonly upload = {};
  response: unknown = null;
  onload = () => {};
  onerror = () => {};
  open() {}
  abort() {}
  setRequestHeader() {}
  send(form: FormData) {
    forms.push(form);
    this.response = { attachments: [{ name: (form.get("files") as File).name, type: "document", url: "/file" }] };
    if (isReachable) this.onload();
    else this.onerror();
  }
}

beforeEach(() => {
  isReachable = true;
  forms = [];
  vi.stubGlobal("XMLHttpRequest", InstantRequest);
});

function compose(agent: Agent) {
  const thread = new OpenThread(crypto.randomUUID(), { isNew: true });
  const page = draw(
    <>
      <DropArea thread={thread} agent={agent}>
        <Composer thread={thread} agent={agent} />
      </DropArea>
      <Toasts />
    </>,
  );
  return { page, uploads: draftOf(thread).uploads };
}

function dispatchFiles(target: Element | null, type: "paste" | "drop", key: "clipboardData" | "dataTransfer", ...files: File[]): Event {
  const event = new Event(type, { bubbles: true, cancelable: true });
  Object.defineProperty(event, key, { value: { files, types: files.length ? ["Files"] : ["text/plain"] } });
  target?.dispatchEvent(event);
  return event;
}

test("P9: retrying a failed upload sends the same bytes", async () => {
  const { page, uploads } = compose(AGENT);
  isReachable = false;
  uploads.add([new File(["milk"], "notes.txt")], "helper");
  await expect.poll(() => texts(page, "[role=alert]")).toEqual(["Upload failed: can't reach the server. Try again."]);
  expect(uploads.ready.value).toEqual([]);

  isReachable = true;
  await press(page, "Retry upload of notes.txt");
  await expect.poll(() => texts(page, "[role=alert]")).toEqual([]);
  expect(buttons(page)).toContain("Remove notes.txt");
  expect(buttons(page)).not.toContain("Retry upload of notes.txt");
  expect(uploads.ready.value).toMatchObject([{ name: "notes.txt", url: "/file" }]);
  expect(forms.map((form) => form.get("agent"))).toEqual(["helper", "helper"]);
  expect(await (forms[1]?.get("files") as File).text()).toBe("milk");
});

test("P9: a pasted image becomes an attachment, and pasted text stays text", async () => {
  const { page } = compose(AGENT);
  const box = await find(page, "#write");
  expect(dispatchFiles(box, "paste", "clipboardData").defaultPrevented).toBe(false);
  const image = new File(["bytes"], "pasted.png", { type: "image/png" });
  expect(dispatchFiles(box, "paste", "clipboardData", image).defaultPrevented).toBe(true);
  expect((await find<HTMLImageElement>(page, ".upload img")).src).toMatch(/^blob:/);
  expect(buttons(page)).toContain("Remove pasted.png");
});

test("P9: an agent that accepts no files has no attach button and rejects dropped files", async () => {
  const { page, uploads } = compose({ ...AGENT, fileInput: null });
  expect(buttons(page)).not.toContain("Attach files");
  dispatchFiles(await find(page, ".drop-area"), "drop", "dataTransfer", new File(["a"], "a.txt"));
  await expect.poll(() => texts(page, ".toast")).toEqual(["This agent doesn't accept files."]);
  expect([uploads.list.value, forms]).toEqual([[], []]);
  expect(buttons(compose(AGENT).page)).toContain("Attach files");
});
