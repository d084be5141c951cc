/** Rendered answers: actions, incomplete answers, reasoning, and the code and charts of cards. */

import { beforeEach, expect, test, vi } from "vitest";

import type { ChartNode } from "../src/api/ui_schema.ts";
import { type Message, turnsOf } from "../src/conversation/messages.ts";
import { OpenThread } from "../src/conversation/open_thread.ts";
import { readMessages } from "../src/conversation/read_messages.ts";
import { Chart } from "../src/views/cards/charts/chart.tsx";
import { Code } from "../src/views/cards/ui_card.tsx";
import { TurnView } from "../src/views/chat/turn.tsx";
import { Toasts } from "../src/views/toasts/toasts.tsx";
import { draw, find, press, texts } from "./page.ts";
import { answer, user } from "./values.ts";

let clipboard: string[] = [];

beforeEach(() => {
  clipboard = [];
  vi.stubGlobal("navigator", { clipboard: { writeText: (text: string) => Promise.resolve(void clipboard.push(text)) } });
});

function drawTurn(...messages: Message[]): HTMLElement {
  const [turn] = turnsOf(messages);
  const thread = new OpenThread("t", { isNew: true });
  return draw(
    <>
      {turn && <TurnView turn={turn} thread={thread} agent={null} isLast isActive={false} />}
      <Toasts />
    </>,
  );
}

test("P17: copying an answer copies its Markdown", async () => {
  const page = drawTurn(user("u"), answer("a", { text: "**One**" }), answer("b", { text: "Two." }));
  await press(page, "Copy response");
  await expect.poll(() => texts(page, ".toast")).toEqual(["Copied"]);
  expect(clipboard).toEqual(["**One**\n\nTwo."]);
});

test("X1: a button under an answer opens its model input", async () => {
  const page = drawTurn(user("u"), answer("a", { run: "r" }));
  await press(page, "View model input");
  expect(location.hash).toBe("#/threads/t/runs/r");
});

test("P17: an answer that reached the length limit says so, and a complete one does not", () => {
  const ends = (status: string) =>
    texts(drawTurn(user("u"), ...readMessages([{ id: "a", role: "assistant", content: "And so on", status }])), ".answer-end");
  expect(ends("length").join()).toContain("The response reached the model's length limit.");
  expect(ends("done")).toEqual([]);
});

test("P17: reasoning is collapsed under a summary line", async () => {
  const page = drawTurn(user("u"), { role: "reasoning", id: "h", text: "Let me see.", isStreaming: false }, answer("a"));
  const reasoning = await find<HTMLDetailsElement>(page, "details.reasoning");
  expect(reasoning.open).toBe(false);
  expect(texts(reasoning, "summary")).toEqual(["Reasoning"]);
  expect(texts(reasoning, "summary ~ *")).toEqual(["Let me see."]);
  expect(texts(page, ".answer .markdown")).toEqual(["answer a"]);
});

test("P14: code in a card can be copied", async () => {
  const page = draw(<Code node={{ type: "code", content: "print('hello')" }} />);
  await press(page, "Copy");
  await expect.poll(() => texts(page, ".copy-code")).toEqual(["Copied"]);
  expect(clipboard).toEqual(["print('hello')"]);
});

test("P14: a chart also shows its values as a table", () => {
  const series = [
    { name: "Rain", values: [3, null, 7] },
    { name: "Sun", values: [12, 15, 1800] },
  ];
  const node: ChartNode = { type: "chart", kind: "line", labels: ["Mo", "Tu", "We"], series };
  const page = draw(<Chart node={node} />);
  expect(texts(page, "details.chart-values summary")).toEqual(["Show data"]);
  const rows = [...page.querySelectorAll(".chart-values tr")].map((row) => texts(row, "th, td"));
  expect(rows.map((row) => row.slice(1))).toEqual([
    ["Rain", "Sun"],
    ["3", "12"],
    ["–", "15"],
    ["7", "1,800"],
  ]);
  expect(rows.slice(1).map(([label]) => label)).toEqual(node.labels);
});
