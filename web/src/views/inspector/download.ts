/** A value as a JSON file for the person who looks at it. */

export function downloadJson(name: string, value: unknown): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2)], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser reads it after the click: it is let go a moment later.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
