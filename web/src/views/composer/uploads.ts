/** File uploads, one request per file, with progress, cancel and retry. */

import { computed, signal } from "@preact/signals";

import { credential } from "../../api/credential.ts";
import type { Agent } from "../../api/routes.ts";
import type { AttachedFile, FileKind } from "../../conversation/messages.ts";
import { newId } from "../../state/ids.ts";
import { notify } from "../../state/toasts.ts";
import { words } from "./words.ts";

export interface Upload {
  readonly key: string;
  readonly name: string;
  readonly size: number;
  readonly mimeType: string;
  readonly state: "uploading" | "ready" | "failed";
  /** Uploaded fraction, from 0 to 1. */
  readonly progress: number;
  readonly problem: string | null;
  readonly file: AttachedFile | null;
  /** Object URL of an image preview. */
  readonly preview: string | null;
}

interface UploadResult {
  readonly id?: string;
  readonly name?: string;
  readonly type?: FileKind;
  readonly url?: string;
  readonly error?: string;
}

const PATH = "/api/v1/agent/attachments";

/** Attachments of the next message. */
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

  /** Remove a file and abort its upload. */
  remove(key: string): void {
    this.#requests.get(key)?.abort();
    this.#release(key);
    this.list.value = this.list.value.filter((upload) => upload.key !== key);
  }

  /** Add files that are already on the server, such as those of an edited message. */
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
    request.onload = () => this.#finish(key, request);
    request.onerror = () => this.#change(key, { state: "failed", problem: "" });
    const form = new FormData();
    if (agent) form.append("agent", agent);
    form.append("files", file, file.name);
    request.send(form);
  }

  #finish(key: string, request: XMLHttpRequest): void {
    this.#requests.delete(key);
    const body = request.response as { attachments?: readonly UploadResult[]; detail?: string } | null;
    const result = body?.attachments?.[0];
    if (!result?.url || result.error) {
      this.#change(key, { state: "failed", problem: result?.error ?? body?.detail ?? "" });
      return;
    }
    const name = result.name ?? this.#files.get(key)?.name ?? "";
    this.#change(key, {
      state: "ready",
      progress: 1,
      file: { id: null, name, kind: result.type ?? "document", url: result.url },
    });
  }

  #change(key: string, change: Partial<Upload>): void {
    this.list.value = this.list.value.map((upload) => (upload.key === key ? { ...upload, ...change } : upload));
  }

  #release(key: string): void {
    this.#requests.delete(key);
    this.#files.delete(key);
    const preview = this.list.value.find((upload) => upload.key === key)?.preview;
    if (preview) URL.revokeObjectURL(preview);
  }
}

export function attach(uploads: Uploads, agent: Agent | null, files: readonly File[]): void {
  if (!agent?.fileInput) notify(words.value.noFiles);
  else uploads.add(files, agent.name);
}

/** Return the `accept` value of the file picker. Any text is a document, so documents allow all types. */
export function acceptedTypes(input: NonNullable<Agent["fileInput"]>): string | undefined {
  if (input.documents) return undefined;
  const kinds = [input.images && "image/*", input.audio && "audio/*", input.video && "video/*"].filter(Boolean);
  return [...kinds, ...input.endings.map((ending) => `.${ending.replace(/^\./, "")}`)].join(",");
}
