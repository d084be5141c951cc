/** The larger nodes of a card: pictures, tables, fields, code, progress. */

import type { Scalar, UiNode } from "../../api/ui_schema.ts";
import { formatNumber } from "../../language/language.ts";
import { Icon } from "../../parts/icon.tsx";
import { CodeBlock } from "../../parts/markdown/code_block.tsx";
import { pictureAt } from "./safe_url.ts";
import { words } from "./words.ts";

type NodeOf<Type extends UiNode["type"]> = Extract<UiNode, { type: Type }>;

export function Image({ node }: { node: NodeOf<"image"> }) {
  const picture = pictureAt(node.url);
  if (picture === null) return null;
  const { alt = "", caption } = node;
  return (
    <figure class="ui-image">
      {picture.kind === "shown" ? (
        <img src={picture.src} alt={alt || caption || words.value.picture} loading="lazy" />
      ) : (
        <a class="button" href={picture.href} target="_blank" rel="noopener noreferrer">
          <Icon name="image" />
          {alt ? `${words.value.openPicture}: ${alt}` : words.value.openPicture}
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
                  {shown(cell)}
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
          <dd>{item.value === null ? <span class="soft">{words.value.unknown}</span> : shown(item.value)}</dd>
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

export function ProgressBar({ node }: { node: NodeOf<"progress"> }) {
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

function shown(value: Scalar): string {
  if (value === null) return "";
  if (typeof value === "boolean") return value ? words.value.yes : words.value.no;
  return typeof value === "number" ? formatNumber(value) : value;
}
