/**
 * Credential of this tab. It is stored in session storage and never in the URL.
 *
 * Signing out, or in as another user, empties the storage and reloads the page so that no data of the previous user
 * stays.
 */

import { signal } from "@preact/signals";

const PREFIX = "recto.";
const TOKEN_KEY = `${PREFIX}token`;

export const credential = signal<string | null>(readStored());
/** True after the server rejected the last token. The sign-in form shows a message. */
export const isTokenRejected = signal(false);

type Finish = () => Promise<unknown>;

const signOutTasks: Finish[] = [];

/** Register a task that needs the credential and runs before sign-out. */
export function onSignOut(finish: Finish): void {
  signOutTasks.push(finish);
}

/** Sign in with a token from the URL and remove it, so that neither the history nor a copied link contains it. */
export function readTokenFromUrl(): void {
  const token = new URLSearchParams(location.hash.slice(1)).get("token")?.trim();
  if (token === undefined) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (!token || token === credential.value) return;
  if (credential.value === null) signIn(token);
  else restart(token);
}

export function signIn(token: string): void {
  isTokenRejected.value = false;
  credential.value = token;
  withStorage((storage) => storage.setItem(TOKEN_KEY, token));
}

export async function signOut(): Promise<void> {
  await Promise.allSettled(signOutTasks.map((finish) => finish()));
  restart(null);
}

/** Forget a token that the server rejected. A newer token stays, and so do drafts. */
export function reject(token: string): void {
  if (credential.value !== token) return;
  isTokenRejected.value = true;
  credential.value = null;
  withStorage((storage) => storage.removeItem(TOKEN_KEY));
}

/** Clear all stored data and reload the page, signed in with `token` if there is one. */
export function restart(token: string | null): void {
  withStorage((storage) => {
    for (const name of Object.keys(storage)) if (name.startsWith(PREFIX)) storage.removeItem(name);
    if (token) storage.setItem(TOKEN_KEY, token);
  });
  history.replaceState(null, "", location.pathname);
  location.reload();
}

const USER_KEY = `${PREFIX}user`;

/** Store the user of this tab. Return true if the stored data belongs to a different user. */
export function isDifferentUser(user: string): boolean {
  const before = withStorage((storage) => storage.getItem(USER_KEY)) ?? null;
  withStorage((storage) => storage.setItem(USER_KEY, user));
  return before !== null && before !== user;
}

function readStored(): string | null {
  return withStorage((storage) => storage.getItem(TOKEN_KEY)) ?? null;
}

function withStorage<Value>(use: (storage: Storage) => Value): Value | undefined {
  try {
    return use(sessionStorage);
  } catch {
    return undefined;
  }
}
