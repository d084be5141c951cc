/** Drafts of messages and their files. */

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

test("blank and too long drafts cannot be sent, and the length counts characters as on the server", () => {
  const draft = new Draft("");
  const canSend = (text: string) => {
    draft.text.value = text;
    return draft.canSend.value;
  };
  expect(["", "  \n", "a", "a".repeat(MAX_LENGTH + 1)].map(canSend)).toEqual([false, false, true, false]);
  expect(canSend("😀".repeat(MAX_LENGTH))).toBe(true);
  expect(canSend("😀".repeat(MAX_LENGTH + 1))).toBe(false);
});

test("a restored message has its files, and is discarded if it is unchanged", () => {
  const draft = new Draft("");
  const file = { id: null, name: "a.txt", kind: "document", url: "/f" } as const;
  draft.restoreMessage("sent", [file]);
  expect([draft.text.value, draft.uploads.ready.value]).toEqual(["sent", [file]]);
  draft.discardRestored();
  expect([draft.text.value, draft.uploads.list.value]).toEqual(["", []]);
  draft.restoreMessage("sent", []);
  draft.text.value = "sent differently";
  draft.discardRestored();
  expect(draft.text.value).toBe("sent differently");
});

test("the previous draft returns once the restored message is sent", () => {
  const draft = new Draft("half a thought");
  draft.restoreMessage("first message", []);
  draft.restoreMessage("second message", []);
  expect(draft.text.value).toBe("second message");
  draft.clear();
  expect(draft.text.value).toBe("half a thought");
  draft.clear();
  expect(draft.text.value).toBe("");
});

test("each thread has a draft, and the draft of a new thread follows it to its id", () => {
  const newThread = thread("t-1", true);
  draftOf(newThread).text.value = "half";
  expect(draftOf(thread("t-2", true)).text.value).toBe("half");
  expect(draftOf(thread("t-3", false)).text.value).toBe("");
  newThread.isNew.value = false;
  expect(sessionStorage.getItem("recto.draft.t-1")).toBe("half");
  expect(sessionStorage.getItem("recto.draft.new")).toBeNull();
  draftOf(newThread).clear();
  expect(sessionStorage.length).toBe(0);
});

test("file URLs of this server become paths under any host name", () => {
  expect(serverFilePath("http://other.example:8787/api/v1/agent/files/1/a%20b.png?signature=x")).toBe(
    "/api/v1/agent/files/1/a%20b.png?signature=x",
  );
  expect(serverFilePath("https://evil.example/x.png")).toBeNull();
  expect(serverFilePath("javascript:alert(1)")).toBeNull();
  expect(serverFilePath("http://x/api/v1/agent/files/../../../secret")).toBeNull();
  expect(serverFilePath("http://[bad")).toBeNull();
});

test("the file picker offers the types that the agent accepts", () => {
  const none = { documents: false, images: false, audio: false, video: false, endings: [], maxFiles: 1, maxBytes: null };
  expect(acceptedTypes({ ...none, documents: true, images: true })).toBeUndefined();
  expect(acceptedTypes({ ...none, images: true, audio: true, endings: ["kt"] })).toBe("image/*,audio/*,.kt");
});
