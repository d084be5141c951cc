/** A document that draws components, and a server that answers them from a table. */

import { render, type ComponentChild } from "preact";
import { afterEach, vi } from "vitest";

/** A limit only: the first drawing waits for modules that are loaded when somebody opens their view. */
const PATIENCE = { timeout: 10_000 };
const places: HTMLElement[] = [];

afterEach(() => {
  for (const place of places.splice(0)) {
    render(null, place);
    place.remove();
  }
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

export function draw(view: ComponentChild): HTMLElement {
  const place = document.createElement("div");
  document.body.append(place);
  places.push(place);
  render(view, place);
  return place;
}

/** Wait until `where` is drawn. */
export async function find<Found extends Element = HTMLElement>(place: ParentNode, where: string): Promise<Found> {
  return await vi.waitFor(() => {
    const found = place.querySelector<Found>(where);
    if (!found) throw new Error(`${where} is not drawn: ${place.textContent}`);
    return found;
  }, PATIENCE);
}

/** The names of all buttons, as a screen reader says them. */
export function buttons(place: ParentNode): string[] {
  return [...place.querySelectorAll("button")].map(nameOf);
}

/** Wait for a button whose name begins so, and click it. */
export async function press(place: ParentNode, name: string): Promise<void> {
  const button = await vi.waitFor(() => {
    const found = [...place.querySelectorAll("button")].find((one) => nameOf(one).startsWith(name));
    if (!found || found.disabled) throw new Error(`No button ${name} among ${buttons(place).join(", ")}`);
    return found;
  }, PATIENCE);
  button.click();
}

function nameOf(button: HTMLElement): string {
  return button.getAttribute("aria-label") ?? button.textContent.trim();
}

/** Type into a field or choose an option. */
export function enter(field: HTMLInputElement | HTMLSelectElement, value: string): void {
  field.value = value;
  field.dispatchEvent(new Event(field.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
}

export function texts(place: ParentNode, where: string): string[] {
  return [...place.querySelectorAll(where)].map((one) => one.textContent.trim());
}

interface Asked {
  readonly url: string;
  readonly body: unknown;
}

/**
 * Answer requests by "METHOD /path" below /api/v1, where * is any name; every other one is a 404.
 * Return the requests of such a name.
 */
export function serve(answers: Readonly<Record<string, unknown>>): (name: string) => Asked[] {
  const all: (Asked & { readonly name: string })[] = [];
  vi.stubGlobal("fetch", (url: string, init: RequestInit = {}) => {
    const path = `${init.method ?? "GET"} ${url.split("?")[0]?.replace("/api/v1", "") ?? ""}`;
    const name = path in answers ? path : path.replace(/threads\/[^/]+/, "threads/*");
    const answer = answers[name];
    all.push({ name, url, body: init.body ? JSON.parse(String(init.body)) : null });
    if (answer === undefined) return Promise.resolve(Response.json({ detail: `No ${path}` }, { status: 404 }));
    return Promise.resolve(typeof answer === "string" ? new Response(answer) : Response.json(answer));
  });
  return (name) => all.filter((one) => one.name === name);
}
