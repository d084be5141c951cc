/**
 * Markdown view.
 *
 * It creates no HTML from text: tokens become the elements below, and HTML in the source stays text. Links allow http,
 * https and mailto only. Images become links, so the page loads nothing from other origins.
 */

import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo, useRef } from "preact/hooks";

import { bilingual } from "../../language/language.ts";
import { CopyButton } from "../clipboard.tsx";
import { memo } from "../memo.ts";
import { highlight } from "./highlight.ts";
import "./markdown.css";

interface Props {
  readonly text: string;
  readonly isStreaming?: boolean;
}

export function Markdown({ text, isStreaming = false }: Props) {
  const previous = useRef<Blocks | null>(null);
  const blocks = useMemo(() => (isStreaming ? extendBlocks(previous.current, text) : parseBlocks(text)), [text, isStreaming]);
  previous.current = isStreaming ? blocks : null;
  return (
    <div class="markdown">
      {blocks.tokens.map((token, place) =>
        token.type === "space" || token.type === "def" ? null : <Block key={place} token={token} />,
      )}
    </div>
  );
}

interface BlockProps {
  readonly token: Token;
}

const Block = memo(({ token }: BlockProps) => <div class="block">{renderTokens([token])}</div>);

const SAFE_LINK = /^(?:https?:\/\/|mailto:)/i;

function renderTokens(tokens: readonly Token[] | undefined): ComponentChildren {
  return tokens?.map((token, index) => <TokenView key={index} token={token as MarkedToken} />);
}

function TokenView({ token }: { token: MarkedToken }): ComponentChildren {
  switch (token.type) {
    case "paragraph":
      return <p>{renderTokens(token.tokens)}</p>;
    case "heading":
      // Use one level below the headings of the page, because models skip levels.
      return <h3 class={`depth-${token.depth}`}>{renderTokens(token.tokens)}</h3>;
    case "code":
      return <CodeBlock code={token.text} language={token.lang?.match(/^[\w+#-]+/)?.[0].toLowerCase() ?? ""} />;
    case "list":
      return renderList(token);
    case "table":
      return renderTable(token);
    case "blockquote":
      return <blockquote>{renderTokens(token.tokens)}</blockquote>;
    case "hr":
      return <hr />;
    case "html":
      return token.block ? <p>{token.text.trim()}</p> : token.text;
    case "space":
    case "def":
      return null;
    default:
      return renderInline(token);
  }
}

function renderInline(token: MarkedToken): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{renderTokens(token.tokens)}</strong>;
    case "em":
      return <em>{renderTokens(token.tokens)}</em>;
    case "del":
      return <del>{renderTokens(token.tokens)}</del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return (
        <SafeLink href={token.href} title={token.title}>
          {renderTokens(token.tokens)}
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
      return token.tokens ? renderTokens(token.tokens) : decode(token.text);
    case "escape":
      return decode(token.text);
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
  if (!SAFE_LINK.test(href) || !URL.canParse(href)) return <>{children}</>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer" {...(title ? { title } : {})}>
      {children}
    </a>
  );
}

function renderList(list: Tokens.List): ComponentChildren {
  const items = list.items.map((item, place) => <li key={place}>{renderTokens(item.tokens)}</li>);
  return list.ordered ? <ol start={list.start || 1}>{items}</ol> : <ul>{items}</ul>;
}

function renderTable({ header, rows, align }: Tokens.Table): ComponentChildren {
  const classOf = (place: number) => (align[place] ? { class: `align-${align[place]}` } : {});
  return (
    <div class="table-scroll" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {header.map((cell, place) => (
              <th key={place} {...classOf(place)}>
                {renderTokens(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, line) => (
            <tr key={line}>
              {row.map((cell, place) => (
                <td key={place} {...classOf(place)}>
                  {renderTokens(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Decode HTML entities into text. */
function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(amp|lt|gt|quot|apos|nbsp|copy|mdash|ndash|hellip));/gi, (all, ten, hex, name) => {
    if (name) return ENTITIES[String(name).toLowerCase()] ?? all;
    const point = ten ? Number(ten) : Number.parseInt(hex, 16);
    return point > 0 && point <= 0x10ffff ? String.fromCodePoint(point) : all;
  });
}

const ENTITIES: Readonly<Record<string, string>> = {
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

interface Blocks {
  readonly text: string;
  readonly tokens: readonly Token[];
}

export function parseBlocks(text: string): Blocks {
  return { text, tokens: new Lexer().lex(text) };
}

/** Return the blocks of a text that extends `before`. Reference links resolve once the text is complete. */
export function extendBlocks(before: Blocks | null, text: string): Blocks {
  if (!before || !text.startsWith(before.text)) return parseBlocks(text);
  if (text.length === before.text.length) return before;
  // Text after blank lines can still continue a list or a paragraph.
  const last = before.tokens.findLastIndex((token) => token.type !== "space");
  const complete = before.tokens.slice(0, Math.max(last, 0));
  const start = complete.reduce((length, token) => length + token.raw.length, 0);
  // The lexer normalizes tabs and line ends, so lengths in `raw` may differ from the text.
  if (!before.text.startsWith(complete.map((token) => token.raw).join(""))) return parseBlocks(text);
  return { text, tokens: [...complete, ...new Lexer().lex(text.slice(start))] };
}

export function CodeBlock({ code, language }: { code: string; language: string }) {
  const tokens = useMemo(() => highlight(code, language), [code, language]);
  return (
    <div class="code-block">
      <div class="code-bar">
        <span>{language}</span>
        <CopyButton class="copy-code plain" hasIcon={false} text={() => code} />
      </div>
      <pre tabIndex={0} role="region" aria-label={language || codeWords.value.code}>
        <code>
          {tokens.map(({ text, kind }, index) =>
            kind ? (
              <span key={index} class={`code-${kind}`}>
                {text}
              </span>
            ) : (
              text
            ),
          )}
        </code>
      </pre>
    </div>
  );
}

const codeWords = bilingual({ code: "Code" }, { code: "代码" });
