/** What this browser keeps of preferences. Where storage is closed to the page, nothing is kept and all works. */

const PREFIX = "recto.";

export const kept = {
  read<Value extends string>(name: string, allowed: readonly Value[]): Value | null {
    try {
      const found = localStorage.getItem(PREFIX + name);
      return allowed.find((value) => value === found) ?? null;
    } catch {
      return null;
    }
  },

  write(name: string, value: string): void {
    try {
      localStorage.setItem(PREFIX + name, value);
    } catch {
      // Private windows may refuse it; the choice then lasts as long as the page.
    }
  },
};
