/** Markdown as models write it, while they write it: only the block that grows is drawn again. */

import type { Token } from "marked";
import { useMemo, useRef } from "preact/hooks";

import { memo } from "../memo.ts";
import { extendBlocks, readBlocks, type Blocks } from "./blocks.ts";
import { drawTokens } from "./draw_tokens.tsx";
import "./markdown.css";

interface Props {
  readonly text: string;
  readonly isStreaming?: boolean;
}

export function Markdown({ text, isStreaming = false }: Props) {
  const growing = useRef<Blocks | null>(null);
  const blocks = useMemo(() => (isStreaming ? extendBlocks(growing.current, text) : readBlocks(text)), [text, isStreaming]);
  growing.current = isStreaming ? blocks : null;
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

const Block = memo(({ token }: BlockProps) => <div class="block">{drawTokens([token])}</div>);
