/** What is written and not yet said, and what goes along with it. */

import { signal } from "@preact/signals";
import { beforeEach, expect, test } from "vitest";

import type { OpenThread } from "../src/conversation/open_thread.ts";
import { serverFilePath } from "../src/parts/files.tsx";
import { Draft, draftOf, MAX_LENGTH } from "../src/views/composer/draft.ts";
import { acceptedTypes } from "../src/views/composer/uploads.ts";

beforeEach(() => sessionStorage.clear());

function thread(id: string, isNew: boolean): OpenThread {
  return { id, isNew: signal(isNew) } as unknown as OpenThread;
}

test("nothing, spaces and too much are not sent; characters are counted as the server does", () => {
  const draft = new Draft("");
  const canSend = (text: string) => {
    draft.text.value = text;
    return draft.canSend.value;
  };
  expect(["", "  \n", "a", "a".repeat(MAX_LENGTH + 1)].map(canSend)).toEqual([false, false, true, false]);
  expect(canSend("😀".repeat(MAX_LENGTH))).toBe(true);
  expect(canSend("😀".repeat(MAX_LENGTH + 1))).toBe(false);
});

test("a message that comes back brings its files, and leaves when it is taken back unchanged", () => {
  const draft = new Draft("");
  const file = { id: null, name: "a.txt", kind: "document", url: "/f" } as const;
  draft.restoreMessage("sent", [file]);
  expect([draft.text.value, draft.uploads.ready.value]).toEqual(["sent", [file]]);
  draft.discardRestored();
  expect([draft.text.value, draft.uploads.list.value]).toEqual(["", []]);
  draft.restoreMessage("sent", []);
  draft.text.value = "said otherwise";
  draft.discardRestored();
  expect(draft.text.value).toBe("said otherwise");
});

test("what was in the box is there again once the message that came back is said or taken back", () => {
  const draft = new Draft("half a thought");
  draft.restoreMessage("said first", []);
  draft.restoreMessage("said second", []);
  expect(draft.text.value).toBe("said second");
  draft.clear();
  expect(draft.text.value).toBe("half a thought");
  draft.clear();
  expect(draft.text.value).toBe("");
});

test("drafts are kept by thread; one of a new thread goes along when it gets its place", () => {
  const made = thread("t-1", true);
  draftOf(made).text.value = "half";
  expect(draftOf(thread("t-2", true)).text.value).toBe("half");
  expect(draftOf(thread("t-3", false)).text.value).toBe("");
  made.isNew.value = false;
  expect(sessionStorage.getItem("recto.draft.t-1")).toBe("half");
  expect(sessionStorage.getItem("recto.draft.new")).toBeNull();
  draftOf(made).clear();
  expect(sessionStorage.length).toBe(0);
});

test("urls of this server's files are paths of the page, whatever name the server goes by", () => {
  expect(serverFilePath("http://other.example:8787/api/v1/agent/files/1/a%20b.png?signature=x")).toBe(
    "/api/v1/agent/files/1/a%20b.png?signature=x",
  );
  expect(serverFilePath("https://evil.example/x.png")).toBeNull();
  expect(serverFilePath("javascript:alert(1)")).toBeNull();
  expect(serverFilePath("http://x/api/v1/agent/files/../../../secret")).toBeNull();
  expect(serverFilePath("http://[bad")).toBeNull();
});

test("the picker offers what the agent takes", () => {
  const none = { documents: false, images: false, audio: false, video: false, endings: [], maxFiles: 1, maxBytes: null };
  expect(acceptedTypes({ ...none, documents: true, images: true })).toBeUndefined();
  expect(acceptedTypes({ ...none, images: true, audio: true, endings: ["kt"] })).toBe("image/*,audio/*,.kt");
});
