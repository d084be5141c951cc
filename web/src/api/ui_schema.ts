/** `uiSchema` v2.0: a card from the server. All strings are plain text, except the content of `markdown` nodes. */

export type Status = "info" | "success" | "warning" | "error" | "pending";
export type Scalar = string | number | boolean | null;

export type UiNode =
  | StackNode
  | { readonly type: "text"; readonly content: string; readonly role?: "title" | "subtitle" | "body" | "caption" }
  | { readonly type: "badge"; readonly label: string; readonly status: Status }
  | { readonly type: "markdown"; readonly content: string }
  | { readonly type: "image"; readonly url: string; readonly alt?: string; readonly caption?: string }
  | { readonly type: "link"; readonly label: string; readonly url: string }
  | {
      readonly type: "button";
      readonly label: string;
      readonly url?: string;
      readonly message?: string;
      readonly style?: "primary" | "secondary" | "danger";
    }
  | { readonly type: "list"; readonly ordered?: boolean; readonly items: readonly UiNode[] }
  | { readonly type: "table"; readonly columns: readonly string[]; readonly rows: readonly (readonly Scalar[])[] }
  | { readonly type: "fields"; readonly items: readonly { readonly label: string; readonly value: Scalar }[] }
  | { readonly type: "code"; readonly content: string; readonly language?: string }
  | { readonly type: "divider" }
  | { readonly type: "progress"; readonly value: number; readonly max: number; readonly label?: string }
  | ChartNode;

interface StackNode {
  readonly type: "stack";
  readonly appearance?: "plain" | "card";
  readonly direction?: "vertical" | "horizontal";
  readonly children: readonly UiNode[];
}

export interface ChartNode {
  readonly type: "chart";
  readonly kind: "bar" | "line" | "area" | "pie";
  readonly title?: string;
  readonly labels: readonly string[];
  readonly series: readonly { readonly name: string; readonly values: readonly (number | null)[] }[];
}

export interface UiSchema {
  readonly version: "2.0";
  readonly locale: string;
  readonly status: Status;
  readonly theme: "default" | "light" | "dark";
  readonly root: StackNode;
}
