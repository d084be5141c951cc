/**
 * Tokens of Markdown as elements of the page.
 *
 * No HTML is ever made: what a model writes can only become the elements below, and HTML that it writes is text. Links
 * lead to http, https and mailto; pictures are links, so that nothing is loaded from anywhere.
 */

import type { MarkedToken, Token, Tokens } from "marked";
import type { ComponentChildren } from "preact";

import { CodeBlock } from "./code_block.tsx";

const SAFE_LINK = /^(?:https?:\/\/|mailto:)/i;

export function isSafeLink(href: string): boolean {
  return SAFE_LINK.test(href) && URL.canParse(href);
}

export function drawTokens(tokens: readonly Token[] | undefined): ComponentChildren {
  return tokens?.map((token, place) => <Drawn key={place} token={token as MarkedToken} />);
}

function Drawn({ token }: { token: MarkedToken }): ComponentChildren {
  switch (token.type) {
    case "paragraph":
      return <p>{drawTokens(token.tokens)}</p>;
    case "heading":
      // Below the page's own headings, and never a level too deep: models skip some.
      return <h3 class={`depth-${token.depth}`}>{drawTokens(token.tokens)}</h3>;
    case "code":
      return <CodeBlock code={token.text} language={languageOf(token.lang)} />;
    case "list":
      return drawList(token);
    case "table":
      return drawTable(token);
    case "blockquote":
      return <blockquote>{drawTokens(token.tokens)}</blockquote>;
    case "hr":
      return <hr />;
    case "html":
      return token.block ? <p>{token.text.trim()}</p> : token.text;
    case "space":
    case "def":
      return null;
    default:
      return drawInline(token);
  }
}

function drawInline(token: MarkedToken): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{drawTokens(token.tokens)}</strong>;
    case "em":
      return <em>{drawTokens(token.tokens)}</em>;
    case "del":
      return <del>{drawTokens(token.tokens)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return (
        <SafeLink href={token.href} title={token.title}>
          {drawTokens(token.tokens)}
        </SafeLink>
      );
    case "image":
      return (
        <SafeLink href={token.href} title={token.title}>
          {token.text || token.href}
        </SafeLink>
      );
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    case "text":
      return token.tokens ? drawTokens(token.tokens) : decoded(token.text);
    case "escape":
      return decoded(token.text);
    default:
      return token.raw;
  }
}

interface LinkProps {
  readonly href: string;
  readonly title?: string | null | undefined;
  readonly children: ComponentChildren;
}

function SafeLink({ href, title, children }: LinkProps) {
  if (!isSafeLink(href)) return <>{children}</>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer" {...(title ? { title } : {})}>
      {children}
    </a>
  );
}

function drawList(list: Tokens.List): ComponentChildren {
  const items = list.items.map((item, place) => <li key={place}>{drawTokens(item.tokens)}</li>);
  return list.ordered ? <ol start={list.start || 1}>{items}</ol> : <ul>{items}</ul>;
}

function drawTable({ header, rows, align }: Tokens.Table): ComponentChildren {
  const classOf = (place: number) => (align[place] ? { class: `align-${align[place]}` } : {});
  return (
    <div class="table-scroll" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {header.map((cell, place) => (
              <th key={place} {...classOf(place)}>
                {drawTokens(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, line) => (
            <tr key={line}>
              {row.map((cell, place) => (
                <td key={place} {...classOf(place)}>
                  {drawTokens(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function languageOf(lang: string | undefined): string {
  return lang?.match(/^[\w+#-]+/)?.[0].toLowerCase() ?? "";
}

/** Signs that Markdown lets one write by name or number, such as &amp;. They become text, never more. */
function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(amp|lt|gt|quot|apos|nbsp|copy|mdash|ndash|hellip));/gi, (all, ten, hex, name) => {
    if (name) return NAMED[String(name).toLowerCase()] ?? all;
    const point = ten ? Number(ten) : Number.parseInt(hex, 16);
    return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : all;
  });
}

const NAMED: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  copy: "©",
  mdash: "—",
  ndash: "–",
  hellip: "…",
};
