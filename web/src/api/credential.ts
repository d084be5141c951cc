/**
 * The token or key this tab is signed in with. It is in the session storage of the tab, never in the address.
 *
 * Whoever signs out, or in as somebody else, leaves nothing: storage is emptied, and the page begins anew.
 */

import { signal } from "@preact/signals";

const PREFIX = "recto.";
const NAME = `${PREFIX}token`;

export const credential = signal<string | null>(readStored());
/** The last one was refused by the server: people are told so. */
export const wasRefused = signal(false);

type Finish = () => Promise<unknown>;

const finishing: Finish[] = [];

/** What has to be done with the credential before it is forgotten. */
export function beforeLeaving(finish: Finish): void {
  finishing.push(finish);
}

/** Take a token out of the address, so that neither history nor a shared link has it. */
export function takeFromAddress(): void {
  const given = new URLSearchParams(location.hash.slice(1)).get("token")?.trim();
  if (given === undefined) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (!given || given === credential.value) return;
  if (credential.value === null) signIn(given);
  else beginAnew(given);
}

export function signIn(token: string): void {
  wasRefused.value = false;
  credential.value = token;
  withStorage((storage) => storage.setItem(NAME, token));
}

export async function signOut(): Promise<void> {
  await Promise.allSettled(finishing.map((finish) => finish()));
  beginAnew(null);
}

/** What the server does not take is forgotten; one that was given meanwhile stays. What is written stays for its writer. */
export function refuse(token: string): void {
  if (credential.value !== token) return;
  wasRefused.value = true;
  credential.value = null;
  withStorage((storage) => storage.removeItem(NAME));
}

/** Nothing of the one who was signed in stays, in storage or in memory. */
export function beginAnew(token: string | null): void {
  withStorage((storage) => {
    for (const name of Object.keys(storage)) if (name.startsWith(PREFIX)) storage.removeItem(name);
    if (token) storage.setItem(NAME, token);
  });
  history.replaceState(null, "", location.pathname);
  location.reload();
}

const WHO = `${PREFIX}user`;

/** Whether a user is another than the one whose words are in this tab; from now on they are theirs. */
export function isSomebodyElse(user: string): boolean {
  const before = withStorage((storage) => storage.getItem(WHO)) ?? null;
  withStorage((storage) => storage.setItem(WHO, user));
  return before !== null && before !== user;
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
