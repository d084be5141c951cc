/** The token or key this tab is signed in with. It is in the session storage of the tab, never in the address. */

import { signal } from "@preact/signals";

const NAME = "recto.token";

export const credential = signal<string | null>(readStored());
/** The last one was refused by the server: people are told so. */
export const wasRefused = signal(false);

/** Take a token out of the address, so that neither history nor a shared link has it. */
export function takeFromAddress(): void {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (given.trim()) signIn(given.trim());
}

export function signIn(token: string): void {
  wasRefused.value = false;
  credential.value = token;
  withStorage((storage) => storage.setItem(NAME, token));
}

export function signOut(): void {
  wasRefused.value = false;
  forget();
}

/** What the server does not take is forgotten; one that was given meanwhile stays. */
export function refuse(token: string): void {
  if (credential.value !== token) return;
  wasRefused.value = true;
  forget();
}

function forget(): void {
  credential.value = null;
  withStorage((storage) => storage.removeItem(NAME));
}

function readStored(): string | null {
  return withStorage((storage) => storage.getItem(NAME)) ?? null;
}

function withStorage<Found>(use: (storage: Storage) => Found): Found | undefined {
  try {
    return use(sessionStorage);
  } catch {
    return undefined;
  }
}
