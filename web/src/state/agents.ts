/** The agents of the server, and the one a new conversation is had with. */

import { computed, signal } from "@preact/signals";

import { getAgents, type Agent, type Skill } from "../api/routes.ts";
import { locale } from "../language/language.ts";

export const agents = signal<readonly Agent[]>([]);
/** What a person chose for the next new thread; null leaves it to the server's default. */
export const chosenAgent = signal<string | null>(null);

export async function loadAgents(): Promise<void> {
  agents.value = (await getAgents()).agents;
}

/** Of agents that are there in several languages, the one of the page's stands for all. */
export const shownAgents = computed(() => {
  const families = new Map<string, Agent[]>();
  for (const agent of agents.value) {
    const family = agent.variantOf ?? agent.name;
    families.set(family, [...(families.get(family) ?? []), agent]);
  }
  return [...families.values()].map(
    (family) => family.find((agent) => agent.locale.startsWith(locale.value)) ?? (family[0] as Agent),
  );
});

export const newThreadAgent = computed(
  () =>
    findAgent(chosenAgent.value) ??
    shownAgents.value.find((agent) => agent.default) ??
    shownAgents.value.find((agent) => agents.value.find((one) => one.default)?.variantOf === agent.name) ??
    shownAgents.value[0] ??
    null,
);

export function findAgent(name: string | null | undefined): Agent | null {
  return agents.value.find((agent) => agent.name === name) ?? null;
}

export function findSkill(agent: Agent | null, name: string | null | undefined): Skill | null {
  return agent?.skills.find((skill) => skill.name === name) ?? null;
}
