/** Settings and lists that users change: the theme, the filters of the savings page, lists of the profile. */

import { expect, test, vi } from "vitest";

import type { Agent } from "../src/api/routes.ts";
import { agents } from "../src/state/agents.ts";
import { ProfilePage } from "../src/views/profile/profile.tsx";
import { SavingsPage } from "../src/views/savings/savings.tsx";
import { draw, enter, find, press, serve, texts } from "./page.ts";

test("the theme follows the system until the user selects one, and survives a reload", async () => {
  /** Open the page as after a reload, when only the browser's storage is left. */
  async function open(): Promise<HTMLSelectElement> {
    vi.resetModules();
    delete document.documentElement.dataset["theme"];
    const { Preferences } = await import("../src/views/preferences/preferences.tsx");
    return await find<HTMLSelectElement>(draw(<Preferences onSelect={() => {}} />), "select[aria-label=Theme]");
  }
  const themesOf = (choice: HTMLSelectElement) => [choice.value, document.documentElement.dataset["theme"]];
  localStorage.clear();
  const choice = await open();
  expect(themesOf(choice)).toEqual(["system", undefined]);
  enter(choice, "light");
  expect(themesOf(choice)).toEqual(["light", "light"]);
  const after = await open();
  expect(themesOf(after)).toEqual(["light", "light"]);
  enter(after, "system");
  expect(themesOf(await open())).toEqual(["system", undefined]);
});

test("R11: selecting a period and an agent filters the savings, and the other agents stay in the list", async () => {
  vi.setSystemTime("2026-11-18T12:00:00Z");
  const row = { rule: "X2", ruleName: null, ruleLink: null, calls: 1, tokens: 9, saved: 5, cost: 1 };
  const rules = ["helper", "other"].map((agent) => ({ agent, ...row }));
  const savings = { since: "", until: "", currency: "USD", rules, breaks: [] };
  const answers = { "GET /agent/savings": savings };
  const requestsOf = serve(answers);
  const page = draw(<SavingsPage onOpenList={() => {}} />);
  await find(page, ".savings-table");
  answers["GET /agent/savings"] = { ...savings, rules: [] };
  const [period, agent] = page.querySelectorAll("select");
  enter(period!, "7");
  enter(agent!, "helper");
  await expect.poll(() => page.textContent).toContain("No savings in this period.");
  expect(requestsOf("GET /agent/savings").map(({ url }) => url.split("?")[1])).toEqual([
    "since=2026-10-20",
    "since=2026-11-12",
    "since=2026-11-12&agent=helper",
  ]);
  expect(texts(agent!, "option")).toEqual(["All agents", "helper", "other"]);
});

test("S6: items can be added to and removed from a list of the profile", async () => {
  const facts = { type: "array", title: "Facts", items: { type: "string" } };
  const profileSchema = { type: "object", properties: { facts } };
  const agent = { name: "helper", locale: "en", variantOf: null, default: true, skills: [], profileSchema };
  agents.value = [agent as unknown as Agent];
  const profile = { tier: "free", updated: null, profile: {}, skillData: {} };
  const requestsOf = serve({ "GET /profile": profile, "PATCH /profile": { ...profile, profile: { facts: ["Has a cat."] } } });
  const page = draw(<ProfilePage onOpenList={() => {}} />);
  for (const [place, fact] of ["Likes tea.", "Has a cat."].entries()) {
    await press(page, "Add Facts");
    enter(await find<HTMLInputElement>(page, `[aria-label="Facts ${place + 1}"]`), fact);
  }
  await press(page, "Remove Facts 1");
  await press(page, "Save");
  await expect.poll(() => texts(page, "h1, .profile-delete")).toContain("Delete Facts");
  expect(requestsOf("PATCH /profile")).toMatchObject([{ url: "/api/v1/profile?agent=helper", body: { facts: ["Has a cat."] } }]);
  expect((await find<HTMLInputElement>(page, "[aria-label='Facts 1']")).value).toBe("Has a cat.");
  expect(page.querySelector("a.button")?.getAttribute("href")).toBe("#/");
});
