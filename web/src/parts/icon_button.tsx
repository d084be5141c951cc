/** A button that is a sign. Its label is what screen readers say, and what is shown when one points at it. */

import { Icon, type IconName } from "./icon.tsx";

interface Props {
  readonly icon: IconName;
  readonly label: string;
  readonly onClick: (event: MouseEvent) => void;
  readonly disabled?: boolean;
  readonly class?: string;
  readonly pressed?: boolean;
}

export function IconButton({ icon, label, onClick, disabled = false, class: more = "", pressed }: Props) {
  return (
    <button
      type="button"
      class={`icon-button ${more}`}
      aria-label={label}
      title={label}
      disabled={disabled}
      onClick={onClick}
      {...(pressed === undefined ? {} : { "aria-pressed": pressed })}
    >
      <Icon name={icon} />
    </button>
  );
}
