/** Something that is read from the server once somebody asks for it, and once only. */

import { batch, signal } from "@preact/signals";

import { ApiError } from "../../api/request.ts";

export class Later<Value> {
  readonly value = signal<Value | null>(null);
  readonly problem = signal<string | null>(null);
  readonly #load: () => Promise<Value>;
  #asked = false;

  constructor(load: () => Promise<Value>) {
    this.#load = load;
  }

  ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    void this.#read();
  }

  askAgain(): void {
    this.#asked = false;
    this.ask();
  }

  async #read(): Promise<void> {
    try {
      const value = await this.#load();
      batch(() => {
        this.value.value = value;
        this.problem.value = null;
      });
    } catch (error) {
      this.problem.value = problemOf(error);
    }
  }
}

export function problemOf(error: unknown): string {
  return error instanceof ApiError ? error.detail : String(error instanceof Error ? error.message : error);
}
