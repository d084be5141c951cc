// CopilotKit's chat on a server of Recto's, without a Node runtime between them.
import { createRoot } from "react-dom/client";
import { useState } from "react";
import { z } from "zod";
import {
  CopilotChat,
  CopilotKitProvider,
  useAgent,
  useCopilotKit,
  useDefaultRenderTool,
  useFrontendTool,
  useHumanInTheLoop,
} from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";

function Tools() {
  const [colour, setColour] = useState("white");
  useFrontendTool({
    name: "paint",
    description: "Paint the page in a colour.",
    parameters: z.object({ colour: z.string() }),
    handler: async ({ colour }) => {
      setColour(colour);
      window.painted = [...(window.painted ?? []), colour];
      return `painted ${colour}`;
    },
  });
  useHumanInTheLoop({
    name: "ask",
    description: "Ask the user a question.",
    parameters: z.object({ question: z.string() }),
    render: ({ args, status, respond, result }) =>
      status === "executing" ? (
        <p data-testid="question">
          {args.question}
          <button onClick={() => respond("yes")}>Yes</button>
          <button onClick={() => respond("no")}>No</button>
        </p>
      ) : (
        <p data-testid="answered">{result}</p>
      ),
  });
  // A tool of the agent's own that asks before it acts: this is how the page asks.
  useHumanInTheLoop({
    name: "send",
    description: "Send a line to everybody.",
    parameters: z.object({ text: z.string() }),
    render: ({ args, status, respond }) =>
      status === "executing" ? (
        <p data-testid="question">
          Send “{args.text}”?
          <button onClick={() => respond({ approved: true })}>Yes</button>
          <button onClick={() => respond({ approved: false, message: "The user said no." })}>No</button>
        </p>
      ) : null,
  });
  useDefaultRenderTool();
  return <style>{`body { background: ${colour} }`}</style>;
}

// Answering again and editing are an app's own: the list is cut, and sent as it is then.
function Chat({ thread }) {
  const { copilotkit } = useCopilotKit();
  const { agent } = useAgent();
  const rerun = (messages) => {
    agent.setMessages(messages);
    copilotkit.runAgent({ agent });
  };
  const before = (message) => agent.messages.slice(0, agent.messages.findIndex(({ id }) => id === message.id));
  const lastOfUser = (messages) => messages.slice(0, messages.findLastIndex(({ role }) => role === "user") + 1);
  return (
    <CopilotChat
      threadId={thread}
      attachments={{ enabled: true }}
      messageView={{
        assistantMessage: { onRegenerate: (message) => rerun(lastOfUser(before(message))) },
        userMessage: {
          onEditMessage: ({ message }) =>
            rerun([...before(message), { ...message, content: `${message.content}, edited` }]),
        },
      }}
    />
  );
}

function App({ url, token, thread, single }) {
  const [problem, setProblem] = useState("");
  return (
    <CopilotKitProvider
      runtimeUrl={`${url}/api/v1/copilotkit`}
      headers={{ Authorization: `Bearer ${token}` }}
      useSingleEndpoint={Boolean(single)}
      onError={({ error }) => setProblem(error.message)}
    >
      {problem && <p role="alert">{problem}</p>}
      <Tools />
      <Chat thread={thread} />
    </CopilotKitProvider>
  );
}

const query = Object.fromEntries(new URLSearchParams(location.search));
createRoot(document.getElementById("root")).render(<App {...query} />);
