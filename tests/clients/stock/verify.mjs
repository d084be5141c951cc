// Stock clients read the streams of a folder: 1.0.0/* as they were sent, 0.0.59/* as older clients get them.
// Transport, checks, order and the list of messages are the client's own. What it will not take is told, a line each.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import * as newest from "@ag-ui/client-1.0";
import * as older from "@ag-ui/client";

const folder = process.argv[2];
let warned = [];
for (const name of ["warn", "error", "log"]) console[name] = (...words) => warned.push(words.map(String).join(" "));

for (const [version, { HttpAgent }] of Object.entries({ "1.0.0": newest, "0.0.59": older })) {
  for (const name of readdirSync(join(folder, version)).filter((name) => !name.includes("."))) {
    const body = readFileSync(join(folder, version, name), "utf8");
    const answer = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
    const agent = new HttpAgent({ url: "http://localhost", fetch: answer });
    warned = [];
    let failed = null;
    await agent.runAgent({}, { onRunFailed: ({ error }) => ((failed = String(error)), { stopPropagation: true }) });
    if (failed || warned.length) process.stdout.write(`${JSON.stringify({ version, name, failed, warned, body })}\n`);
  }
}
