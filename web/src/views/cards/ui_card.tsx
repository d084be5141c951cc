/** Cards of tools and answers: `uiSchema` v2.0 in the style of the page. */

import type { Scalar, UiNode, UiSchema } from "../../api/ui_schema.ts";
import { formatNumber } from "../../language/language.ts";
import { Icon } from "../../parts/icon.tsx";
import { CodeBlock, Markdown } from "../../parts/markdown/markdown.tsx";
import { Chart } from "./charts/chart.tsx";
import "./ui_card.css";
import { words } from "./words.ts";

interface Props {
  readonly schema: UiSchema;
  readonly onMessage: (text: string) => void;
}

export function UiCard({ schema, onMessage }: Props) {
  return (
    <div class={`ui-root ${schema.status}`} lang={schema.locale}>
      <NodeView node={schema.root} onMessage={onMessage} />
    </div>
  );
}

type NodeOf<Type extends UiNode["type"]> = Extract<UiNode, { type: Type }>;

interface NodeProps<Node> {
  readonly node: Node;
  readonly onMessage: (text: string) => void;
}

function NodeView({ node, onMessage }: NodeProps<UiNode>) {
  switch (node.type) {
    case "stack":
      return <Stack node={node} onMessage={onMessage} />;
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
      return <Action node={node} onMessage={onMessage} />;
    case "list":
      return <List node={node} onMessage={onMessage} />;
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

function Stack({ node, onMessage }: NodeProps<NodeOf<"stack">>) {
  const { appearance = "plain", direction = "vertical" } = node;
  return (
    <div class={`ui-stack ui-${appearance} ui-${direction}`}>
      {node.children.map((child, place) => (
        <NodeView key={place} node={child} onMessage={onMessage} />
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

function Action({ node, onMessage }: NodeProps<NodeOf<"button">>) {
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
        if (message !== undefined) onMessage(message);
      }}
    >
      {label}
    </button>
  );
}

function List({ node, onMessage }: NodeProps<NodeOf<"list">>) {
  const items = node.items.map((item, place) => (
    <li key={place}>
      <NodeView node={item} onMessage={onMessage} />
    </li>
  ));
  return node.ordered ? <ol class="ui-list">{items}</ol> : <ul class="ui-list">{items}</ul>;
}

export function Image({ node }: { node: NodeOf<"image"> }) {
  const picture = imageSource(node.url);
  if (picture === null) return null;
  const { alt = "", caption } = node;
  return (
    <figure class="ui-image">
      {picture.kind === "inline" ? (
        <img src={picture.src} alt={alt || caption || words.value.image} loading="lazy" />
      ) : (
        <a class="button" href={picture.href} target="_blank" rel="noopener noreferrer">
          <Icon name="image" />
          {alt ? `${words.value.openImage}: ${alt}` : words.value.openImage}
        </a>
      )}
      {caption && <figcaption class="soft small">{caption}</figcaption>}
    </figure>
  );
}

export function Table({ node }: { node: NodeOf<"table"> }) {
  return (
    <div class="ui-scroll" tabIndex={0} role="group" aria-label={node.columns.join(", ")}>
      <table class="ui-table">
        <thead>
          <tr>
            {node.columns.map((column, place) => (
              <th key={place} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {node.rows.map((row, place) => (
            <tr key={place}>
              {row.map((cell, column) => (
                <td key={column} class={typeof cell === "number" ? "number" : ""}>
                  {formatScalar(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Fields({ node }: { node: NodeOf<"fields"> }) {
  return (
    <dl class="ui-fields">
      {node.items.map((item, place) => (
        <div key={place}>
          <dt>{item.label}</dt>
          <dd>{item.value === null ? <span class="soft">{words.value.unknown}</span> : formatScalar(item.value)}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Code({ node }: { node: NodeOf<"code"> }) {
  return (
    <div class="ui-code">
      <CodeBlock code={node.content} language={node.language?.toLowerCase() ?? ""} />
    </div>
  );
}

function ProgressBar({ node }: { node: NodeOf<"progress"> }) {
  const part = Math.min(1, Math.max(0, node.value / node.max));
  const percent = `${Math.round(part * 100)} %`;
  return (
    <div class="ui-progress">
      <span class="small">
        {node.label} <span class="soft">{percent}</span>
      </span>
      <div
        class="ui-progress-track"
        role="progressbar"
        aria-label={node.label ?? percent}
        aria-valuemin={0}
        aria-valuemax={node.max}
        aria-valuenow={Math.min(node.value, node.max)}
        aria-valuetext={percent}
      >
        <div style={{ width: `${part * 100}%` }} />
      </div>
    </div>
  );
}

function formatScalar(value: Scalar): string {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? words.value.yes : words.value.no;
  return typeof value === "number" ? formatNumber(value) : value;
}

const WEB = /^https?:\/\/[^\s/?#@\\<>"]+(?:[/?#][^\s\\<>"]*)?$/i;
const OURS = /^\/api\/(?![^?#]*(?:\.|%2e){2})[^\s\\<>"]*$/i;
const MAIL = /^mailto:[^\s\\<>"]+$/i;
const INLINE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/;

/** Return the URL if it may be a link, else null. */
export function safeLink(url: unknown): string | null {
  return typeof url === "string" && [WEB, OURS, MAIL].some((kind) => kind.test(url)) ? url : null;
}

export type Picture = { readonly kind: "inline"; readonly src: string } | { readonly kind: "link"; readonly href: string };

/** Show images of this server and data URLs. Link other images, because loading them would reveal the user to another site. */
export function imageSource(url: unknown): Picture | null {
  if (typeof url !== "string") return null;
  if (OURS.test(url) || INLINE.test(url)) return { kind: "inline", src: url };
  return WEB.test(url) ? { kind: "link", href: url } : null;
}
