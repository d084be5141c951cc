// A program that does what it is told: one command a line comes in as JSON, one answer a line goes out, under its id.
// Commands are begun as they come and may overlap, so that a run can be stopped while it goes on.
import { createInterface } from "node:readline";

export function serve(commands) {
  const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
  // Standard output is for answers: what packages print goes elsewhere.
  for (const name of ["log", "info", "debug", "warn", "error"]) {
    console[name] = (...words) => process.stderr.write(`${words.map(String).join(" ")}\n`);
  }
  createInterface({ input: process.stdin }).on("line", async (line) => {
    const { id, command, ...rest } = JSON.parse(line);
    try {
      say({ id, answer: (await commands[command](rest)) ?? null });
    } catch (error) {
      say({ id, error: String(error?.stack ?? error) });
    }
  }).on("close", async () => {
    await commands.close?.({});
    process.exit(0);
  });
}

// Wait for what is asked for, looking again and again; what it was in the end is the error's text.
export async function until(look, what, seconds = 10) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what} did not come in ${seconds} seconds`);
    await new Promise((go) => setTimeout(go, 5));
  }
}
