/** A card as a tool or an answer meant it: a `uiSchema` v2.0, drawn with the page's own type and colours. */

import type { UiSchema } from "../../api/ui_schema.ts";
import "./ui_card.css";
import { NodeView } from "./ui_nodes.tsx";

interface Props {
  readonly schema: UiSchema;
  readonly onSay: (words: string) => void;
}

export function UiCard({ schema, onSay }: Props) {
  return (
    <div class={`ui-shown ${schema.status}`} lang={schema.locale}>
      <NodeView node={schema.root} onSay={onSay} />
    </div>
  );
}
