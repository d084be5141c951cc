/** Turns of messages, and texts of answers. */

import { expect, test } from "vitest";

import { answerText, emptyAnswer, runOf, displayText, turnsOf, type Message } from "../src/conversation/messages.ts";
import { answer, user } from "./values.ts";

test("a turn is a user message and everything up to the next one", () => {
  const turns = turnsOf([answer("a0"), user("u1"), answer("a1"), answer("a2"), user("u2")]);
  expect(turns.map(({ key, user: question, answers }) => [key, question?.id, answers.map(({ id }) => id)])).toEqual([
    ["a0", undefined, ["a0"]],
    ["u1", "u1", ["a1", "a2"]],
    ["u2", "u2", []],
  ]);
  expect(turnsOf([])).toEqual([]);
});

test("unchanged turns keep their identity", () => {
  const messages: Message[] = [user("u1"), answer("a1"), user("u2"), answer("a2")];
  const before = turnsOf(messages);
  const after = turnsOf([...messages.slice(0, 3), answer("a2", { text: "more" })]);
  expect(after[0]).toBe(before[0]);
  expect(after[1]).not.toBe(before[1]);
  expect(turnsOf(messages.slice(0, 3))[1]?.answers).toEqual([]);
});

test("the run of a turn is the last that wrote in it, else the run of its message", () => {
  const [turn] = turnsOf([user("u1", { run: "r0" }), answer("a1", { run: "r1" }), answer("a2", { run: null })]);
  expect(turn && runOf(turn)).toBe("r1");
  const [unanswered] = turnsOf([user("u2", { run: "r0" })]);
  expect(unanswered && runOf(unanswered)).toBe("r0");
});

const CARD = { version: "2.0", locale: "en", status: "info", theme: "default", root: { type: "stack", children: [] } } as const;

test("an answer with a card shows its text and never its JSON", () => {
  const text = '{"content": "Sunny.", "ui_hints": {}}';
  expect(displayText(answer("a", { text, ui: CARD }))).toBe("Sunny.");
  expect(displayText(answer("a", { text: '{"ui_hints": {}}', ui: CARD }))).toBe("");
  expect(displayText(answer("a", { text: "Sunny.", ui: CARD }))).toBe("Sunny.");
  expect(displayText({ ...emptyAnswer("a"), text: '{"content": "Su' })).toBe("");
  expect(displayText(answer("a", { text: '{"a": 1}' }))).toBe('{"a": 1}');
});

test("the text of a turn joins its answers", () => {
  const [turn] = turnsOf([user("u1"), answer("a1", { text: "One." }), answer("a2", { text: "" }), answer("a3", { text: "Two." })]);
  expect(turn && answerText(turn)).toBe("One.\n\nTwo.");
});
