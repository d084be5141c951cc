// assistant-ui on a server of Recto's, with the server's own history.
import { createRoot } from "react-dom/client";
import { useMemo } from "react";
import { HttpAgent } from "@ag-ui/client";
import {
  ActionBarPrimitive,
  AssistantRuntimeProvider,
  ComposerPrimitive,
  ErrorPrimitive,
  ExportedMessageRepository,
  MessagePrimitive,
  ThreadPrimitive,
  useAssistantTool,
} from "@assistant-ui/react";
import { fromAgUiMessages, useAgUiRuntime } from "@assistant-ui/react-ag-ui";

function useRectoRuntime({ url, token, thread }) {
  const headers = useMemo(() => ({ Authorization: `Bearer ${token}` }), [token]);
  const agent = useMemo(
    () => new HttpAgent({ url: `${url}/api/v1/agent/ag-ui`, headers, threadId: thread }),
    [url, headers, thread],
  );
  const history = useMemo(
    () => ({
      async load() {
        const all = [];
        for (let since = ""; since !== null; ) {
          const query = since ? `?since=${encodeURIComponent(since)}` : "";
          const answer = await fetch(`${url}/api/v1/agent/threads/${thread}/messages${query}`, { headers });
          const { messages, next } = answer.ok ? await answer.json() : { messages: [], next: null };
          all.push(...messages);
          since = next;
        }
        return ExportedMessageRepository.fromArray(fromAgUiMessages(all));
      },
      // The server has what was said.
      async append() {},
    }),
    [url, headers, thread],
  );
  return useAgUiRuntime({ agent, adapters: { history } });
}

function Tools() {
  useAssistantTool({
    toolName: "paint",
    description: "Paint the page in a colour.",
    parameters: { type: "object", properties: { colour: { type: "string" } }, required: ["colour"] },
    execute: async ({ colour }) => {
      window.painted = [...(window.painted ?? []), colour];
      return `painted ${colour}`;
    },
  });
  return null;
}

const Call = ({ toolName, result }) => <p data-testid="call">{`${toolName}: ${JSON.stringify(result)}`}</p>;

const UserMessage = () => (
  <MessagePrimitive.Root data-testid="user">
    <MessagePrimitive.Content />
    <ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit>
  </MessagePrimitive.Root>
);

const AssistantMessage = () => (
  <MessagePrimitive.Root data-testid="assistant">
    <MessagePrimitive.Content components={{ tools: { Fallback: Call } }} />
    <MessagePrimitive.Error>
      <ErrorPrimitive.Root>
        <ErrorPrimitive.Message data-testid="error" />
      </ErrorPrimitive.Root>
    </MessagePrimitive.Error>
    <ActionBarPrimitive.Reload>Again</ActionBarPrimitive.Reload>
  </MessagePrimitive.Root>
);

const EditComposer = () => (
  <ComposerPrimitive.Root>
    <ComposerPrimitive.Input data-testid="edit" />
    <ComposerPrimitive.Send>Change</ComposerPrimitive.Send>
  </ComposerPrimitive.Root>
);

function App(props) {
  return (
    <AssistantRuntimeProvider runtime={useRectoRuntime(props)}>
      <Tools />
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage, EditComposer }} />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input data-testid="input" />
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

const { url, token, thread } = Object.fromEntries(new URLSearchParams(location.search));
createRoot(document.getElementById("root")).render(<App url={url} token={token} thread={thread} />);
