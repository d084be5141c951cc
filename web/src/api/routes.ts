/** API routes that the page uses, with types from the OpenAPI description. */

import type { MessageRow } from "./agui.ts";
import { fetchJson, send } from "./request.ts";
import type { components, paths } from "./schema.ts";

type Shapes = components["schemas"];

export type ThreadRow = Shapes["ThreadRow"];
export type ThreadDetails = paths["/api/v1/agent/threads/{id}"]["get"]["responses"][200]["content"]["application/json"];
type ThreadsPage = Shapes["ThreadsShape"];
export type Agent = Shapes["AgentShape"];
export type Skill = Shapes["SkillShape"];
export type Call = Shapes["CallShape"];
export type Difference = Shapes["DifferenceShape"];
export type RollbackResult =
  paths["/api/v1/agent/threads/{id}/rollback"]["post"]["responses"][200]["content"]["application/json"];
type RestoreResult =
  paths["/api/v1/agent/threads/{id}/files/restore"]["post"]["responses"][200]["content"]["application/json"];
export type Savings = Shapes["SavingsShape"];
export type Profile = paths["/api/v1/profile"]["get"]["responses"][200]["content"]["application/json"];

export interface RunAdmission {
  readonly taskId: string;
  readonly threadId: string;
  readonly runId: string;
  readonly created: string;
}

interface MessagesPage {
  readonly messages: readonly MessageRow[];
  readonly next: string | null;
  readonly activeRun: string | null;
}

interface Me {
  readonly user: string;
}

const AGENT = "/api/v1/agent";
const thread = (id: string) => `${AGENT}/threads/${encodeURIComponent(id)}`;
const run = (id: string) => `${AGENT}/runs/${encodeURIComponent(id)}`;

export const getMe = (token?: string) => fetchJson<Me>(`${AGENT}/me`, token === undefined ? {} : { token });
export const getAgents = () => fetchJson<{ agents: Agent[] }>(`${AGENT}/agents`);

export const listThreads = (query: { cursor?: string | null; search?: string | null; limit?: number }) =>
  fetchJson<ThreadsPage>(`${AGENT}/threads`, { query });
export const getThread = (id: string, signal?: AbortSignal) =>
  fetchJson<ThreadDetails>(thread(id), signal ? { signal } : {});
export const renameThread = (id: string, title: string) =>
  fetchJson<ThreadRow>(thread(id), { method: "PATCH", body: { title } });
export const deleteThread = (id: string) => send(thread(id), { method: "DELETE", keepalive: true });
export const forkThread = (id: string, before: string | null) =>
  fetchJson<ThreadRow>(`${thread(id)}/fork`, { method: "POST", body: before === null ? {} : { before } });
export const rollBack = (id: string, messageId: string) =>
  fetchJson<RollbackResult>(`${thread(id)}/rollback`, { method: "POST", body: { messageId } });
export const undoRollback = (id: string) => fetchJson<unknown>(`${thread(id)}/undo`, { method: "POST" });
export const compactThread = (id: string, runId: string) =>
  fetchJson<RunAdmission>(`${thread(id)}/compact`, { method: "POST", body: { runId, protocolVersion: "1.0" } });
export const restoreFiles = (id: string, messageId: string) =>
  fetchJson<RestoreResult>(`${thread(id)}/files/restore`, { method: "POST", body: { messageId } });
export const getMessages = (id: string, since: string | null, signal?: AbortSignal) =>
  fetchJson<MessagesPage>(`${thread(id)}/messages`, { query: { details: 1, since }, ...(signal ? { signal } : {}) });

export const startRun = (body: unknown) => fetchJson<RunAdmission>(`${AGENT}/runs`, { method: "POST", body });
export const cancelRun = (id: string) => fetchJson<unknown>(`${run(id)}/cancel`, { method: "POST" });
export const resumeRun = (id: string, resume: unknown) =>
  fetchJson<RunAdmission>(`${run(id)}/resume`, { method: "POST", body: { resume } });

export const getSavings = (since: string, agent: string | null) =>
  fetchJson<Savings>(`${AGENT}/savings`, { query: { since, agent } });
export const getProfile = () => fetchJson<Profile>("/api/v1/profile");
export const changeProfile = (patch: unknown, agent: string | null) =>
  fetchJson<Profile>("/api/v1/profile", { method: "PATCH", query: { agent }, body: patch });
