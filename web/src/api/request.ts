/** HTTP requests to the server, with the credential of this tab. */

import { bilingual } from "../language/language.ts";
import { credential, reject } from "./credential.ts";

/** An error response, or no response at all (`status` 0). `detail` is text for the user. */
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

  /** True if the same request may succeed later. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Request {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly query?: Query;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** Token to use instead of the credential of this tab. */
  readonly token?: string;
  /** Finish the request even if the user leaves the page. */
  readonly keepalive?: boolean;
}

/** Send a request and return its response. Raise ApiError for an error status. */
export async function send(path: string, request: Request = {}): Promise<Response> {
  const token = request.token ?? credential.value;
  const headers: Record<string, string> = { ...request.headers };
  if (token) headers["authorization"] = `Bearer ${token}`;
  if (request.body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(address(path, request.query), {
      method: request.method ?? "GET",
      headers,
      body: request.body === undefined ? null : JSON.stringify(request.body),
      signal: request.signal ?? null,
      keepalive: request.keepalive ?? false,
    });
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new ApiError(0, words.peek().offline);
  }
  if (response.ok) return response;
  if (response.status === 401 && token) reject(token);
  throw await errorOf(response);
}

/** Send a request and return its JSON body. */
export async function fetchJson<Body>(path: string, request: Request = {}): Promise<Body> {
  const response = await send(path, request);
  try {
    return (await response.json()) as Body;
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new ApiError(0, words.peek().cut);
  }
}

export function address(path: string, query: Query = {}): string {
  const parameters = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const search = new URLSearchParams(parameters.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${path}?${search}` : path;
}

export async function errorOf(response: Response): Promise<ApiError> {
  const seconds = Number(response.headers.get("retry-after"));
  const retryAfter = Number.isFinite(seconds) && seconds > 0 ? seconds : null;
  return new ApiError(response.status, await detailOf(response), retryAfter);
}

async function detailOf(response: Response): Promise<string> {
  try {
    const body = (await response.json()) as { detail?: unknown };
    if (typeof body.detail === "string") return body.detail;
  } catch {
    // A proxy may answer with any body.
  }
  return words.peek().status(response.status);
}

export const words = bilingual(
  {
    offline: "Can't reach the server. Check your connection and try again.",
    cut: "The response was cut off. Try again.",
    status: (status: number) => `Request failed (HTTP ${status}). Try again.`,
  },
  {
    offline: "无法连接服务器。请检查网络后重试。",
    cut: "响应中断，请重试。",
    status: (status: number) => `请求失败（HTTP ${status}），请重试。`,
  },
);
