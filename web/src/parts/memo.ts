/** Return a component that renders only when a prop changes. Signals still update it. */

import { Component, h, type FunctionComponent } from "preact";

export function memo<Props extends object>(Inner: FunctionComponent<Props>): new (props: Props) => Component<Props> {
  return class extends Component<Props> {
    override shouldComponentUpdate(next: Readonly<Props>): boolean {
      return hasChanged(this.props, next);
    }

    override render() {
      return h(Inner, this.props);
    }
  };
}

function hasChanged(before: object, next: object): boolean {
  const values = before as Readonly<Record<string, unknown>>;
  const names = Object.keys(next);
  if (names.length !== Object.keys(before).length) return true;
  return names.some((name) => values[name] !== (next as Readonly<Record<string, unknown>>)[name]);
}
