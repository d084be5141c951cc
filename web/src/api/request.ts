/** One request to the server, with the credential of this tab. What is refused is raised with the server's own words. */

import { credential, refuse } from "./credential.ts";
import { words } from "./words.ts";

/** A refusal of the server, or none of it at all (`status` 0). `detail` is a sentence for people. */
export class ApiError extends Error {
  readonly status: number;
  readonly detail: string;
  readonly retryAfter: number | null;

  constructor(status: number, detail: string, retryAfter: number | null = null) {
    super(detail);
    this.name = "ApiError";
    this.status = status;
    this.detail = detail;
    this.retryAfter = retryAfter;
  }

  /** The same request may be answered later: nobody was reached, or the server has no room just now. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Request {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly query?: Query;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** In the place of the one this tab is signed in with: one that is tried. */
  readonly token?: string;
  /** It is sent on though the page is left. */
  readonly keepalive?: boolean;
}

/** Send it and give the answer as it is; who reads it finds out whether it is whole. */
export async function send(path: string, request: Request = {}): Promise<Response> {
  const token = request.token ?? credential.value;
  const headers: Record<string, string> = { ...request.headers };
  if (token) headers["authorization"] = `Bearer ${token}`;
  if (request.body !== undefined) headers["content-type"] = "application/json";
  const response = await reach(address(path, request.query), {
    method: request.method ?? "GET",
    headers,
    body: request.body === undefined ? null : JSON.stringify(request.body),
    signal: request.signal ?? null,
    keepalive: request.keepalive ?? false,
  });
  if (response.ok) return response;
  if (response.status === 401 && token) refuse(token);
  throw await refusalOf(response);
}

/** Send it and read the answer as JSON. */
export async function ask<Answer>(path: string, request: Request = {}): Promise<Answer> {
  const response = await send(path, request);
  try {
    return (await response.json()) as Answer;
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new ApiError(0, words.peek().cut);
  }
}

export function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${path}?${search}` : path;
}

async function reach(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, words.peek().unreached);
  }
}

export async function refusalOf(response: Response): Promise<ApiError> {
  const seconds = Number(response.headers.get("retry-after"));
  const retryAfter = Number.isFinite(seconds) && seconds > 0 ? seconds : null;
  return new ApiError(response.status, await detailOf(response), retryAfter);
}

async function detailOf(response: Response): Promise<string> {
  try {
    const body = (await response.json()) as { detail?: unknown };
    if (typeof body.detail === "string") return body.detail;
  } catch {
    // What stands between the page and the server may answer with anything.
  }
  return words.peek().answered(response.status);
}
