/** Agents of the server, and the agent for new conversations. */

import { computed, signal } from "@preact/signals";

import { getAgents, type Agent, type Skill } from "../api/routes.ts";
import { locale } from "../language/language.ts";

export const agents = signal<readonly Agent[]>([]);
/** Agent that the user selected for the next conversation, or null for the default. */
export const selectedAgent = signal<string | null>(null);

export async function loadAgents(): Promise<void> {
  agents.value = (await getAgents()).agents;
}

/** One agent of each family of language variants: the variant in the page language if there is one. */
export const visibleAgents = computed(() => {
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
    findAgent(selectedAgent.value) ??
    visibleAgents.value.find((agent) => agent.default) ??
    visibleAgents.value.find((agent) => agents.value.find((other) => other.default)?.variantOf === agent.name) ??
    visibleAgents.value[0] ??
    null,
);

export function findAgent(name: string | null | undefined): Agent | null {
  return agents.value.find((agent) => agent.name === name) ?? null;
}

export function findSkill(agent: Agent | null, name: string | null | undefined): Skill | null {
  return agent?.skills.find((skill) => skill.name === name) ?? null;
}
