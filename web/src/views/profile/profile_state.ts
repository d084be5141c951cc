/** What is kept of a user, while they look at it and change it. Saved is only what changed. */

import { signal } from "@preact/signals";

import { ApiError } from "../../api/request.ts";
import { changeProfile, getProfile, type Agent, type Profile } from "../../api/routes.ts";
import { FormState } from "../forms/form_state.ts";
import type { JsonObject } from "../forms/json.ts";
import { patchOf } from "../forms/patch.ts";
import { profileFields, profileKnown, refusedField } from "./profile_fields.ts";

export type Saved = "saved" | "unchanged" | "refused";

export class ProfileState {
  readonly profile = signal<Profile | null>(null);
  /** Whose schema it is shown by. */
  readonly agent = signal<Agent | null>(null);
  readonly form = signal<FormState | null>(null);
  readonly problem = signal<string | null>(null);
  readonly isBusy = signal(false);

  showBy(agent: Agent | null): void {
    if (agent === this.agent.value) return;
    this.agent.value = agent;
    this.#draw();
  }

  async load(): Promise<void> {
    await this.#attempt(async () => {
      this.profile.value = await getProfile();
      this.#draw();
    });
  }

  async save(): Promise<Saved> {
    const form = this.form.value;
    const value = form?.read();
    if (!form || !value) return "refused";
    const patch = patchOf(form.root.value, profileKnown(this.#kept()), value);
    if (!Object.keys(patch).length) return "unchanged";
    return (await this.change(patch)) ? "saved" : "refused";
  }

  async change(patch: JsonObject): Promise<boolean> {
    return await this.#attempt(async () => {
      this.profile.value = await changeProfile(patch, this.agent.value?.name ?? null);
      this.#draw();
    });
  }

  /** The form is made anew from what is kept. */
  #draw(): void {
    if (this.profile.value === null) return;
    const kept = this.#kept();
    const agent = this.agent.value;
    const schema = (agent?.profileSchema ?? null) as JsonObject | null;
    const shown = { schema, kept, locale: agent?.locale ?? "en" };
    this.form.value = new FormState((draft) => profileFields(shown, draft), profileKnown(kept));
  }

  #kept(): JsonObject {
    return (this.profile.value?.profile ?? {}) as JsonObject;
  }

  async #attempt(act: () => Promise<void>): Promise<boolean> {
    this.problem.value = null;
    this.isBusy.value = true;
    try {
      await act();
      return true;
    } catch (error) {
      this.#refused(error);
      return false;
    } finally {
      this.isBusy.value = false;
    }
  }

  /** At the field it is about, where the server named one. */
  #refused(error: unknown): void {
    const said = error instanceof ApiError ? error.detail : String(error);
    const form = this.form.value;
    const isValue = error instanceof ApiError && error.status === 422;
    const problem = form && isValue ? refusedField(said, form.root.value) : null;
    if (form && problem) form.refuse([problem]);
    else this.problem.value = said;
  }
}
