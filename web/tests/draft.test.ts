/** What is written and not yet said, and what goes along with it. */

import { signal } from "@preact/signals";
import { beforeEach, expect, test } from "vitest";

import type { OpenThread } from "../src/conversation/open_thread.ts";
import { ownPath } from "../src/parts/own_path.ts";
import { acceptOf } from "../src/views/composer/attach.ts";
import { Draft, draftOf, LONGEST } from "../src/views/composer/draft.ts";

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
  expect(["", "  \n", "a", "a".repeat(LONGEST + 1)].map(canSend)).toEqual([false, false, true, false]);
  expect(canSend("😀".repeat(LONGEST))).toBe(true);
  expect(canSend("😀".repeat(LONGEST + 1))).toBe(false);
});

test("a message that comes back brings its files, and leaves when it is taken back unchanged", () => {
  const draft = new Draft("");
  const file = { id: null, name: "a.txt", kind: "document", url: "/f" } as const;
  draft.bringBack("said", [file]);
  expect([draft.text.value, draft.uploads.ready.value]).toEqual(["said", [file]]);
  draft.takeBack();
  expect([draft.text.value, draft.uploads.list.value]).toEqual(["", []]);
  draft.bringBack("said", []);
  draft.text.value = "said otherwise";
  draft.takeBack();
  expect(draft.text.value).toBe("said otherwise");
});

test("what was in the box is there again once the message that came back is said or taken back", () => {
  const draft = new Draft("half a thought");
  draft.bringBack("said first", []);
  draft.bringBack("said second", []);
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
  expect(ownPath("http://other.example:8787/api/v1/agent/files/1/a%20b.png?signature=x")).toBe(
    "/api/v1/agent/files/1/a%20b.png?signature=x",
  );
  expect(ownPath("https://evil.example/x.png")).toBeNull();
  expect(ownPath("javascript:alert(1)")).toBeNull();
  expect(ownPath("http://x/api/v1/agent/files/../../../secret")).toBeNull();
  expect(ownPath("http://[bad")).toBeNull();
});

test("the picker offers what the agent takes", () => {
  const none = { documents: false, images: false, audio: false, video: false, endings: [], maxFiles: 1, maxBytes: null };
  expect(acceptOf({ ...none, documents: true, images: true })).toBeUndefined();
  expect(acceptOf({ ...none, images: true, audio: true, endings: ["kt"] })).toBe("image/*,audio/*,.kt");
});
