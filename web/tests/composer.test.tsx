/** Files on their way into a message: a failed upload, a pasted picture, an agent that takes none. */

import { beforeEach, expect, test, vi } from "vitest";

import type { Agent } from "../src/api/routes.ts";
import { OpenThread } from "../src/conversation/open_thread.ts";
import { Composer } from "../src/views/composer/composer.tsx";
import { draftOf } from "../src/views/composer/draft.ts";
import { DropArea } from "../src/views/composer/drop_area.tsx";
import { Notices } from "../src/views/notices/notices.tsx";
import { buttons, draw, find, press, texts } from "./page.ts";

const fileInput = { documents: true, images: true, audio: false, video: false, endings: [], maxFiles: 5, maxBytes: null };
const AGENT = { name: "helper", fileInput, skills: [], forms: [] } as unknown as Agent;
let isReachable = true;
let forms: FormData[] = [];

/** A request of the browser that the server answers at once, or that reaches nobody. */
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
      <Notices />
    </>,
  );
  return { page, uploads: draftOf(thread).uploads };
}

function give(place: Element | null, event: "paste" | "drop", key: "clipboardData" | "dataTransfer", ...files: File[]): Event {
  const given = new Event(event, { bubbles: true, cancelable: true });
  Object.defineProperty(given, key, { value: { files, types: files.length ? ["Files"] : ["text/plain"] } });
  place?.dispatchEvent(given);
  return given;
}

test("P9: an upload that did not reach the server is sent again, with the same bytes", async () => {
  const { page, uploads } = compose(AGENT);
  isReachable = false;
  uploads.add([new File(["milk"], "notes.txt")], "helper");
  await expect.poll(() => texts(page, "[role=alert]")).toEqual(["The server could not be reached. Try again."]);
  expect(uploads.ready.value).toEqual([]);

  isReachable = true;
  await press(page, "Upload notes.txt again");
  await expect.poll(() => texts(page, "[role=alert]")).toEqual([]);
  expect(buttons(page)).toContain("Remove notes.txt");
  expect(buttons(page)).not.toContain("Upload notes.txt again");
  expect(uploads.ready.value).toMatchObject([{ name: "notes.txt", url: "/file" }]);
  expect(forms.map((form) => form.get("agent"))).toEqual(["helper", "helper"]);
  expect(await (forms[1]?.get("files") as File).text()).toBe("milk");
});

test("P9: a pasted picture becomes a file of the message, and pasted text stays text", async () => {
  const { page } = compose(AGENT);
  const box = await find(page, "#write");
  expect(give(box, "paste", "clipboardData").defaultPrevented).toBe(false);
  const picture = new File(["bytes"], "pasted.png", { type: "image/png" });
  expect(give(box, "paste", "clipboardData", picture).defaultPrevented).toBe(true);
  expect((await find<HTMLImageElement>(page, ".upload img")).src).toMatch(/^blob:/);
  expect(buttons(page)).toContain("Remove pasted.png");
});

test("P9: an agent without files has no button for them and rejects dropped ones", async () => {
  const { page, uploads } = compose({ ...AGENT, fileInput: null });
  expect(buttons(page)).not.toContain("Attach files");
  give(await find(page, ".drop-area"), "drop", "dataTransfer", new File(["a"], "a.txt"));
  await expect.poll(() => texts(page, ".notice")).toEqual(["This agent takes no files."]);
  expect([uploads.list.value, forms]).toEqual([[], []]);
  expect(buttons(compose(AGENT).page)).toContain("Attach files");
});
