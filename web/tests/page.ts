/** Rendering of components, and a fake server with a table of responses. */

import { render, type ComponentChild } from "preact";
import { afterEach, vi } from "vitest";

/** Upper limit. The first rendering loads lazy modules. */
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

/** Wait until an element matches `where`. */
export async function find<Match extends Element = HTMLElement>(place: ParentNode, where: string): Promise<Match> {
  return await vi.waitFor(() => {
    const element = place.querySelector<Match>(where);
    if (!element) throw new Error(`${where} is not on the page: ${place.textContent}`);
    return element;
  }, PATIENCE);
}

/** Return the accessible names of all buttons. */
export function buttons(place: ParentNode): string[] {
  return [...place.querySelectorAll("button")].map(nameOf);
}

/** Wait for a button whose name starts with `name`, and click it. */
export async function press(place: ParentNode, name: string): Promise<void> {
  const button = await vi.waitFor(() => {
    const match = [...place.querySelectorAll("button")].find((one) => nameOf(one).startsWith(name));
    if (!match || match.disabled) throw new Error(`No button ${name} among ${buttons(place).join(", ")}`);
    return match;
  }, PATIENCE);
  button.click();
}

function nameOf(button: HTMLElement): string {
  return button.getAttribute("aria-label") ?? button.textContent.trim();
}

/** Type into a field or select an option. */
export function enter(field: HTMLInputElement | HTMLSelectElement, value: string): void {
  field.value = value;
  field.dispatchEvent(new Event(field.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
}

export function texts(place: ParentNode, where: string): string[] {
  return [...place.querySelectorAll(where)].map((one) => one.textContent.trim());
}

interface LoggedRequest {
  readonly url: string;
  readonly body: unknown;
}

/**
 * Answer requests by "METHOD /path" below /api/v1, where * is any name. All other requests get a 404.
 * Return a function that lists the requests of a name.
 */
export function serve(answers: Readonly<Record<string, unknown>>): (name: string) => LoggedRequest[] {
  const all: (LoggedRequest & { readonly name: string })[] = [];
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
