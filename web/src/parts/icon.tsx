/** Icons in the text color. They are hidden from screen readers, so their parent needs a label. */

const PATHS = {
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zm5 12 4 4",
  menu: "M4 6h16M4 12h16M4 18h16",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5m-6 6 6-6 6 6",
  stop: "M7 7h10v10H7z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  edit: "M4 20l1-5L16 4l4 4L9 19zM14 6l4 4",
  retry: "M5 12a7 7 0 1 1 2 5m-2 3v-4h4",
  undo: "M9 7L4 12l5 5M4 12h10a6 6 0 0 1 6 6",
  fork: "M7 4v10a4 4 0 0 0 4 4h6m-3-3 3 3-3 3M7 4 4 7m3-3 3 3",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  attach: "M8 12l6-6a3 3 0 0 1 4 4l-8 8a5 5 0 0 1-7-7l7-7",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01",
  sound: "M5 10v4h3l4 4V6l-4 4zM16 9a4 4 0 0 1 0 6M18.500 6.500a8 8 0 0 1 0 11",
  film: "M4 5h16v14H4zM8 5v14M16 5v14M4 12h16",
  eye: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12zm10-3a3 3 0 1 1 0 6 3 3 0 0 1 0-6z",
  tool: "M14 6a4 4 0 0 0-5 5L4 16l4 4 5-5a4 4 0 0 0 5-5l-3 3-4-4z",
  check: "M5 12l5 5L19 7",
  warning: "M12 4l9 16H3zM12 10v4m0 3h.01",
  clock: "M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16zm0 4v4l3 2",
  chevron: "M9 6l6 6-6 6",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  compact: "M4 6h16M7 12h10M10 18h4",
  person: "M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM5 20a7 7 0 0 1 14 0",
  sparkle: "M12 3l2 7 7 2-7 2-2 7-2-7-7-2 7-2z",
  keyboard: "M3 7h18v10H3zM7 11h.01M11 11h.01M15 11h.01M8 14h8",
  leave: "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9",
  download: "M12 4v11m-5-5 5 5 5-5M5 20h14",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

interface Props {
  readonly icon: IconName;
  readonly label: string;
  readonly onClick: (event: MouseEvent) => void;
  readonly disabled?: boolean;
  readonly class?: string;
  readonly pressed?: boolean;
}

export function IconButton({ icon, label, onClick, disabled = false, class: className = "", pressed }: Props) {
  return (
    <button
      type="button"
      class={`icon-button ${className}`}
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
