/** Files on their way to the server, one request each: progress, cancel, try again. A refusal says why, others go on. */

import { computed, signal } from "@preact/signals";

import { credential } from "../api/credential.ts";
import type { AttachedFile, FileKind } from "../conversation/messages.ts";
import { newId } from "./ids.ts";

export interface Upload {
  readonly key: string;
  readonly name: string;
  readonly size: number;
  readonly mimeType: string;
  readonly state: "uploading" | "ready" | "failed";
  /** Of its bytes, from 0 to 1. */
  readonly progress: number;
  readonly problem: string | null;
  readonly file: AttachedFile | null;
  /** A picture of it, by a url of this browser. */
  readonly preview: string | null;
}

/** What the server answers for one file. */
interface Stored {
  readonly id?: string;
  readonly name?: string;
  readonly type?: FileKind;
  readonly url?: string;
  readonly error?: string;
}

const PATH = "/api/v1/agent/attachments";

/** The files that go with the next message. */
export class Uploads {
  readonly list = signal<readonly Upload[]>([]);
  readonly isBusy = computed(() => this.list.value.some((upload) => upload.state === "uploading"));
  readonly ready = computed(() => this.list.value.flatMap((upload) => (upload.file ? [upload.file] : [])));
  readonly #requests = new Map<string, XMLHttpRequest>();
  readonly #files = new Map<string, File>();

  add(files: Iterable<File>, agent: string | null): void {
    for (const file of files) {
      const key = newId();
      this.#files.set(key, file);
      const upload: Upload = {
        key,
        name: file.name,
        size: file.size,
        mimeType: file.type,
        state: "uploading",
        progress: 0,
        problem: null,
        file: null,
        preview: /^image\/(png|jpeg|gif|webp)$/.test(file.type) ? URL.createObjectURL(file) : null,
      };
      this.list.value = [...this.list.value, upload];
      this.#send(key, file, agent);
    }
  }

  retry(key: string, agent: string | null): void {
    const file = this.#files.get(key);
    if (!file) return;
    this.#change(key, { state: "uploading", progress: 0, problem: null });
    this.#send(key, file, agent);
  }

  /** One that is still on its way is ended. */
  remove(key: string): void {
    this.#requests.get(key)?.abort();
    this.#forget(key);
    this.list.value = this.list.value.filter((upload) => upload.key !== key);
  }

  /** Files that the server has already, such as those of a message that is edited. */
  restore(files: readonly AttachedFile[]): void {
    const restored = files.map(
      (file): Upload => ({
        key: newId(),
        name: file.name,
        size: 0,
        mimeType: "",
        state: "ready",
        progress: 1,
        problem: null,
        file,
        preview: null,
      }),
    );
    this.list.value = [...this.list.value, ...restored];
  }

  clear(): void {
    for (const { key } of this.list.value) this.remove(key);
  }

  #send(key: string, file: File, agent: string | null): void {
    const request = new XMLHttpRequest();
    this.#requests.set(key, request);
    request.open("POST", PATH);
    request.responseType = "json";
    if (credential.value) request.setRequestHeader("authorization", `Bearer ${credential.value}`);
    request.upload.onprogress = ({ loaded, total }) => this.#change(key, { progress: total ? loaded / total : 0 });
    request.onload = () => this.#ended(key, request);
    request.onerror = () => this.#change(key, { state: "failed", problem: "" });
    const form = new FormData();
    if (agent) form.append("agent", agent);
    form.append("files", file, file.name);
    request.send(form);
  }

  #ended(key: string, request: XMLHttpRequest): void {
    this.#requests.delete(key);
    const body = request.response as { attachments?: readonly Stored[]; detail?: string } | null;
    const stored = body?.attachments?.[0];
    if (!stored?.url || stored.error) {
      this.#change(key, { state: "failed", problem: stored?.error ?? body?.detail ?? "" });
      return;
    }
    const name = stored.name ?? this.#files.get(key)?.name ?? "";
    this.#change(key, {
      state: "ready",
      progress: 1,
      file: { id: null, name, kind: stored.type ?? "document", url: stored.url },
    });
  }

  #change(key: string, change: Partial<Upload>): void {
    this.list.value = this.list.value.map((upload) => (upload.key === key ? { ...upload, ...change } : upload));
  }

  #forget(key: string): void {
    this.#requests.delete(key);
    this.#files.delete(key);
    const preview = this.list.value.find((upload) => upload.key === key)?.preview;
    if (preview) URL.revokeObjectURL(preview);
  }
}
