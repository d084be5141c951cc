// @copilotkit/core on a leash: what CopilotKit's own chat is made of, without a page.
import { CopilotKitCore, ɵcreateThreadStore as createThreadStore } from "@copilotkit/core-1.75";
import { z } from "zod";
import { serve, until } from "./commands.mjs";

// It asks a server nothing where it sees no window.
globalThis.window ??= globalThis;
const cores = new Map();

function look(held) {
  const { core, errors, executed, agent } = held;
  return {
    status: core.runtimeConnectionStatus,
    agents: Object.keys(core.agents),
    messages: agent?.messages ?? [],
    state: agent?.state ?? null,
    errors: errors.splice(0),
    executed: executed.splice(0),
  };
}

function threadsOf(held) {
  const { threads, isLoading, error } = held.threads.getState();
  return { isLoading, error, threads, changed: error !== null || !isLoading };
}

serve({
  // A core under a name, once it knows the server.
  async open({ name, url, headers, transport, threadId }) {
    const held = { errors: [], executed: [], url, headers };
    held.core = new CopilotKitCore({ runtimeUrl: url, headers, runtimeTransport: transport });
    held.core.subscribe({ onError: ({ error, code }) => void held.errors.push({ code, message: error.message }) });
    held.core.addTool({
      name: "paint",
      description: "Paint the page.",
      parameters: z.object({ colour: z.string() }),
      handler: async ({ colour }) => (held.executed.push(colour), `painted ${colour}`),
    });
    cores.set(name, held);
    await until(() => ["connected", "error"].includes(held.core.runtimeConnectionStatus), "info");
    held.agent = held.core.getAgent("default");
    if (held.agent && threadId) held.agent.threadId = threadId;
    return { ...look(held), threadId: held.agent?.threadId ?? null };
  },

  // One run and what follows of it, such as a result of a tool of the page; `add` goes behind the list.
  async run({ name, add }) {
    const held = cores.get(name);
    held.agent.addMessages(add ?? []);
    await held.core.runAgent({ agent: held.agent });
    return look(held);
  },

  async connect({ name }) {
    const held = cores.get(name);
    await held.core.connectAgent({ agent: held.agent });
    return look(held);
  },

  async saw({ name, text }) {
    const held = cores.get(name);
    await until(() => JSON.stringify(held.agent.messages).includes(text), text);
    return look(held);
  },

  stop({ name }) {
    const held = cores.get(name);
    held.core.stopAgent({ agent: held.agent });
  },

  async suggest({ name, instructions }) {
    const { core } = cores.get(name);
    core.addSuggestionsConfig({ instructions, available: "always", maxSuggestions: 2 });
    core.reloadSuggestions("default");
    await until(() => {
      const { suggestions, isLoading } = core.getSuggestions("default");
      return !isLoading && suggestions.length;
    }, "suggestions");
    return core.getSuggestions("default");
  },

  // The list of threads, and what is done with one of them: rename, archive, delete.
  async threads({ name, act, threadId, title }) {
    const held = cores.get(name);
    held.threads ??= createThreadStore({ fetch });
    if (!held.started) {
      held.threads.start();
      held.started = true;
    }
    held.threads.setContext({ runtimeUrl: held.url, headers: held.headers, agentId: "default", limit: 50 });
    await until(() => threadsOf(held).changed, "threads");
    if (act === "rename") await held.threads.renameThread(threadId, title);
    if (act === "archive") await held.threads.archiveThread(threadId);
    if (act === "delete") await held.threads.deleteThread(threadId);
    const { threads, error } = threadsOf(held);
    return { threads, error: error && String(error) };
  },
});
