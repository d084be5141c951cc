// HttpAgent of @ag-ui/client, the newest and the one that CopilotKit and assistant-ui use, on a leash.
import * as newest from "@ag-ui/client-1.0";
import * as older from "@ag-ui/client";
import { serve, until } from "../commands.mjs";

const CLIENTS = { "1.0.0": newest, "0.0.59": older };
const agents = new Map();

serve({
  // An agent under a name. `body` replays a stream in place of a server's answer.
  open({ name, version, url, headers, threadId, messages, state, body }) {
    const replay = body && (async () => new Response(body, { headers: { "content-type": "text/event-stream" } }));
    const config = { url, headers, threadId, initialMessages: messages, initialState: state };
    const agent = new CLIENTS[version].HttpAgent(replay ? { ...config, fetch: replay } : config);
    agents.set(name, { agent, seen: null });
    return { threadId: agent.threadId };
  },

  // One run, to its end. `messages` take the place of the agent's list, `add` goes behind it.
  async run({ name, messages, add, state, ...parameters }) {
    const held = agents.get(name);
    const { agent } = held;
    if (messages) agent.setMessages(messages);
    if (state) agent.setState(state);
    if (add) agent.addMessages(add);
    const seen = { events: [], pending: null, outcome: null, interrupts: null, failed: null, warned: [] };
    held.seen = seen;
    const warn = console.warn;
    console.warn = (...words) => seen.warned.push(words.join(" "));
    try {
      await agent.runAgent(parameters, {
        onEvent: ({ event }) => void seen.events.push(event),
        onRunFinishedEvent: ({ outcome, pendingToolCallIds, interrupts }) => {
          Object.assign(seen, { outcome, pending: pendingToolCallIds ?? null, interrupts: interrupts ?? null });
        },
        onRunFailed: ({ error }) => {
          seen.failed = { message: error.message, status: error.status ?? null, payload: error.payload ?? null };
          return { stopPropagation: true };
        },
      });
    } finally {
      console.warn = warn;
    }
    return { ...seen, messages: agent.messages, state: agent.state, threadId: agent.threadId };
  },

  // Wait until the run under way has seen an event of a type.
  async saw({ name, type }) {
    await until(() => agents.get(name).seen?.events.find((event) => event.type === type), type);
  },

  stop({ name }) {
    agents.get(name).agent.abortRun();
  },
});
