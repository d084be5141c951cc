/** Preferences in the browser's storage. If the browser blocks storage, they last as long as the page. */

const PREFIX = "recto.";

/** Return the stored value if it is one of `allowed`, else null. */
export function readSetting<Value extends string>(name: string, allowed: readonly Value[]): Value | null {
  try {
    const stored = localStorage.getItem(PREFIX + name);
    return allowed.find((value) => value === stored) ?? null;
  } catch {
    return null;
  }
}

export function writeSetting(name: string, value: string): void {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    // Private windows may block storage.
  }
}
