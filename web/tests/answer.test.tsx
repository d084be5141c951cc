/** Answers as they are drawn: their actions, why one is not whole, folded thoughts, code and charts of cards. */

import { beforeEach, expect, test, vi } from "vitest";

import type { ChartNode } from "../src/api/ui_schema.ts";
import { turnsOf, type Message } from "../src/conversation/messages.ts";
import { OpenThread } from "../src/conversation/open_thread.ts";
import { readMessages } from "../src/conversation/read_messages.ts";
import { Chart } from "../src/views/cards/charts/chart.tsx";
import { Code } from "../src/views/cards/ui_blocks.tsx";
import { TurnView } from "../src/views/chat/turn.tsx";
import { Notices } from "../src/views/notices/notices.tsx";
import { draw, find, press, texts } from "./page.ts";
import { answer, user } from "./values.ts";

let copied: string[] = [];

beforeEach(() => {
  copied = [];
  vi.stubGlobal("navigator", { clipboard: { writeText: (text: string) => Promise.resolve(void copied.push(text)) } });
});

function drawTurn(...messages: Message[]): HTMLElement {
  const [turn] = turnsOf(messages);
  const thread = new OpenThread("t", { isNew: true });
  return draw(
    <>
      {turn && <TurnView turn={turn} thread={thread} agent={null} isLast isAnswered={false} />}
      <Notices />
    </>,
  );
}

test("P17: an answer is copied as the Markdown that the model wrote", async () => {
  const page = drawTurn(user("u"), answer("a", { text: "**One**" }), answer("b", { text: "Two." }));
  await press(page, "Copy the answer");
  await expect.poll(() => texts(page, ".notice")).toEqual(["Copied."]);
  expect(copied).toEqual(["**One**\n\nTwo."]);
});

test("X1: the model's view of an answer is one click away", async () => {
  const page = drawTurn(user("u"), answer("a", { run: "r" }));
  await press(page, "What the model saw");
  expect(location.hash).toBe("#/threads/t/runs/r");
});

test("P17: an answer that the model's limit cut off says so, and a whole one does not", () => {
  const ends = (status: string) =>
    texts(drawTurn(user("u"), ...readMessages([{ id: "a", role: "assistant", content: "And so on", status }])), ".answer-end");
  expect(ends("length").join()).toContain("Cut off: the answer reached the model's limit.");
  expect(ends("done")).toEqual([]);
});

test("P17: thoughts are folded away below a line of their own", async () => {
  const page = drawTurn(user("u"), { role: "reasoning", id: "h", text: "Let me see.", isStreaming: false }, answer("a"));
  const thoughts = await find<HTMLDetailsElement>(page, "details.reasoning");
  expect(thoughts.open).toBe(false);
  expect(texts(thoughts, "summary")).toEqual(["Thought for a while"]);
  expect(texts(thoughts, "summary ~ *")).toEqual(["Let me see."]);
  expect(texts(page, ".answer .markdown")).toEqual(["answer a"]);
});

test("P14: code of a card is copied", async () => {
  const page = draw(<Code node={{ type: "code", content: "print('hello')" }} />);
  await press(page, "Copy");
  await expect.poll(() => texts(page, ".copy-code")).toEqual(["Copied"]);
  expect(copied).toEqual(["print('hello')"]);
});

test("P14: the values of a chart are a table too", () => {
  const series = [
    { name: "Rain", values: [3, null, 7] },
    { name: "Sun", values: [12, 15, 1800] },
  ];
  const node: ChartNode = { type: "chart", kind: "line", labels: ["Mo", "Tu", "We"], series };
  const page = draw(<Chart node={node} />);
  expect(texts(page, "details.chart-values summary")).toEqual(["Show the values"]);
  const rows = [...page.querySelectorAll(".chart-values tr")].map((row) => texts(row, "th, td"));
  expect(rows.map((row) => row.slice(1))).toEqual([
    ["Rain", "Sun"],
    ["3", "12"],
    ["–", "15"],
    ["7", "1,800"],
  ]);
  expect(rows.slice(1).map(([label]) => label)).toEqual(node.labels);
});
