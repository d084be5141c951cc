/** Choices and lists that people change: the theme, the savings they look at, lists of the profile. */

import { expect, test, vi } from "vitest";

import type { Agent } from "../src/api/routes.ts";
import { agents } from "../src/state/agents.ts";
import { ProfilePage } from "../src/views/profile/profile.tsx";
import { SavingsPage } from "../src/views/savings/savings.tsx";
import { draw, enter, find, press, serve, texts } from "./page.ts";

test("the theme is the system's until another is chosen, and the choice outlasts a reload", async () => {
  /** The page after a reload: only the browser's storage remembers. */
  async function open(): Promise<HTMLSelectElement> {
    vi.resetModules();
    delete document.documentElement.dataset["theme"];
    const { Preferences } = await import("../src/views/preferences/preferences.tsx");
    return await find<HTMLSelectElement>(draw(<Preferences onChosen={() => {}} />), "select[aria-label=Colours]");
  }
  const shown = (choice: HTMLSelectElement) => [choice.value, document.documentElement.dataset["theme"]];
  localStorage.clear();
  const choice = await open();
  expect(shown(choice)).toEqual(["system", undefined]);
  enter(choice, "light");
  expect(shown(choice)).toEqual(["light", "light"]);
  const after = await open();
  expect(shown(after)).toEqual(["light", "light"]);
  enter(after, "system");
  expect(shown(await open())).toEqual(["system", undefined]);
});

test("R11: the period and the agent are chosen, and the other agents stay in the list", async () => {
  vi.setSystemTime("2026-11-18T12:00:00Z");
  const row = { rule: "X2", ruleName: null, ruleLink: null, calls: 1, tokens: 9, saved: 5, cost: 1 };
  const rules = ["helper", "other"].map((agent) => ({ agent, ...row }));
  const found = { since: "", until: "", currency: "USD", rules, breaks: [] };
  const answers = { "GET /agent/savings": found };
  const asked = serve(answers);
  const page = draw(<SavingsPage onOpenList={() => {}} />);
  await find(page, ".savings-table");
  answers["GET /agent/savings"] = { ...found, rules: [] };
  const [period, agent] = page.querySelectorAll("select");
  enter(period!, "7");
  enter(agent!, "helper");
  await expect.poll(() => page.textContent).toContain("Nothing was folded in this period.");
  expect(asked("GET /agent/savings").map(({ url }) => url.split("?")[1])).toEqual([
    "since=2026-10-20",
    "since=2026-11-12",
    "since=2026-11-12&agent=helper",
  ]);
  expect(texts(agent!, "option")).toEqual(["All agents", "helper", "other"]);
});

test("S6: lists of the profile grow and shrink, and the saved one has what is left", async () => {
  const extracted = { type: "array", title: "Known facts", items: { type: "string" } };
  const profileSchema = { type: "object", properties: { extracted } };
  const agent = { name: "vibe", locale: "en", variantOf: null, default: true, skills: [], profileSchema };
  agents.value = [agent as unknown as Agent];
  const kept = { tier: "free", updated: null, profile: {}, skillData: {} };
  const asked = serve({ "GET /profile": kept, "PATCH /profile": { ...kept, profile: { extracted: ["Has a cat."] } } });
  const page = draw(<ProfilePage onOpenList={() => {}} />);
  for (const [place, fact] of ["Likes tea.", "Has a cat."].entries()) {
    await press(page, "Add Known facts");
    enter(await find<HTMLInputElement>(page, `[aria-label="Known facts ${place + 1}"]`), fact);
  }
  await press(page, "Remove Known facts 1");
  await press(page, "Save");
  await expect.poll(() => texts(page, "h1, .profile-forget")).toContain("Forget: Known facts");
  expect(asked("PATCH /profile")).toMatchObject([{ url: "/api/v1/profile?agent=vibe", body: { extracted: ["Has a cat."] } }]);
  expect((await find<HTMLInputElement>(page, "[aria-label='Known facts 1']")).value).toBe("Has a cat.");
  expect(page.querySelector("a.button")?.getAttribute("href")).toBe("#/");
});
