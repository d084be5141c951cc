/** The nodes of a card, each drawn by what it is. One that is not known is skipped: the others say what they say. */

import type { UiNode } from "../../api/ui_schema.ts";
import { Markdown } from "../../parts/markdown/markdown.tsx";
import { Chart } from "./charts/chart.tsx";
import { safeLink } from "./safe_url.ts";
import { Code, Fields, Image, ProgressBar, Table } from "./ui_blocks.tsx";

type NodeOf<Type extends UiNode["type"]> = Extract<UiNode, { type: Type }>;

interface Props<Node> {
  readonly node: Node;
  readonly onSay: (words: string) => void;
}

export function NodeView({ node, onSay }: Props<UiNode>) {
  switch (node.type) {
    case "stack":
      return <Stack node={node} onSay={onSay} />;
    case "text":
      return <Text node={node} />;
    case "badge":
      return <span class={`badge ${node.status}`}>{node.label}</span>;
    case "markdown":
      return <Markdown text={node.content} />;
    case "image":
      return <Image node={node} />;
    case "link":
      return <Link node={node} />;
    case "button":
      return <Action node={node} onSay={onSay} />;
    case "list":
      return <List node={node} onSay={onSay} />;
    case "table":
      return <Table node={node} />;
    case "fields":
      return <Fields node={node} />;
    case "code":
      return <Code node={node} />;
    case "divider":
      return <hr class="ui-divider" />;
    case "progress":
      return <ProgressBar node={node} />;
    case "chart":
      return <Chart node={node} />;
    default:
      return null;
  }
}

function Stack({ node, onSay }: Props<NodeOf<"stack">>) {
  const { appearance = "plain", direction = "vertical" } = node;
  return (
    <div class={`ui-stack ui-${appearance} ui-${direction}`}>
      {node.children.map((child, place) => (
        <NodeView key={place} node={child} onSay={onSay} />
      ))}
    </div>
  );
}

function Text({ node }: { node: NodeOf<"text"> }) {
  const { role = "body", content } = node;
  return role === "title" ? <h2 class="ui-text title">{content}</h2> : <p class={`ui-text ${role}`}>{content}</p>;
}

function Link({ node }: { node: NodeOf<"link"> }) {
  const href = safeLink(node.url);
  if (href === null) return <span>{node.label}</span>;
  return (
    <a class="ui-link" href={href} target="_blank" rel="noopener noreferrer">
      {node.label}
    </a>
  );
}

function Action({ node, onSay }: Props<NodeOf<"button">>) {
  const { label, message, style = "secondary" } = node;
  const href = safeLink(node.url);
  if (href !== null) {
    return (
      <a class={`button ${style}`} href={href} target="_blank" rel="noopener noreferrer">
        {label}
      </a>
    );
  }
  return (
    <button
      type="button"
      class={style}
      disabled={message === undefined}
      onClick={() => {
        if (message !== undefined) onSay(message);
      }}
    >
      {label}
    </button>
  );
}

function List({ node, onSay }: Props<NodeOf<"list">>) {
  const items = node.items.map((item, place) => (
    <li key={place}>
      <NodeView node={item} onSay={onSay} />
    </li>
  ));
  return node.ordered ? <ol class="ui-list">{items}</ol> : <ul class="ui-list">{items}</ul>;
}
