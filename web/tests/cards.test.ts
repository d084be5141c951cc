/** Cards: allowed URLs, chart scales, diffs, arguments and skill activations. */

import { describe, expect, test } from "vitest";

import type { Agent } from "../src/api/routes.ts";
import type { ToolCall } from "../src/conversation/messages.ts";
import { prettyText, readArguments } from "../src/views/cards/call_details.tsx";
import {
  fractionOf,
  labelInterval,
  roundStep,
  scaleOf,
  segmentsOf,
  slicesOf,
} from "../src/views/cards/charts/scale.ts";
import { diffLines, parseUnifiedDiff } from "../src/views/cards/diff.ts";
import { activatedSkill, skillTitle } from "../src/views/cards/tool_card.tsx";
import { imageSource, safeLink } from "../src/views/cards/ui_card.tsx";

describe("URLs", () => {
  test.each(["https://example.com/a?b#c", "HTTP://example.com", "mailto:anna@example.com", "/api/v1/files/1?sig=x"])(
    "%s may be a link",
    (url) => {
      expect(safeLink(url)).toBe(url);
    },
  );

  test.each([
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "data:image/svg+xml;base64,PHN2Zz4=",
    "vbscript:x",
    "blob:https://example.com/1",
    "file:///etc/passwd",
    "//evil.example",
    "/other",
    "/api/../secret",
    "/api/%2e%2e/secret",
    "https://user@evil.example",
    "https://evil.example\\@good.example",
    'https://example.com/"onclick=',
    "",
    null,
    7,
  ])("%s may not be a link", (url) => {
    expect(safeLink(url)).toBeNull();
  });

  test("images load from this server and from data URLs only", () => {
    expect(imageSource("/api/v1/files/1")).toEqual({ kind: "inline", src: "/api/v1/files/1" });
    expect(imageSource("data:image/png;base64,AAAA")).toMatchObject({ kind: "inline" });
    expect(imageSource("https://example.com/a.png")).toEqual({ kind: "link", href: "https://example.com/a.png" });
    expect(imageSource("data:image/svg+xml;base64,AAAA")).toBeNull();
    expect(imageSource("javascript:alert(1)")).toBeNull();
  });
});

describe("charts", () => {
  test.each([
    [[[1, 2, 9]], 0, 10],
    [[[-3, 4]], -4, 4],
    [[[0, 0]], 0, 1],
    [[[null]], 0, 1],
    [[[0.02, 0.09]], 0, 0.1],
    [[[4841]], 0, 6000],
  ])("the scale of %j goes from %d to %d", (series, min, max) => {
    const scale = scaleOf(series);
    expect([scale.min, scale.max]).toEqual([min, max]);
    expect(fractionOf(scale, scale.min)).toBe(0);
    expect(fractionOf(scale, scale.max)).toBe(1);
  });

  test("steps are round", () => {
    expect([0.3, 1, 1.2, 3, 7, 70].map(roundStep)).toEqual([0.5, 1, 2, 5, 10, 100]);
  });

  test("null splits a line", () => {
    expect(segmentsOf([1, null, 2, 3, null]).map((one) => one.map(({ place }) => place))).toEqual([[0], [2, 3]]);
  });

  test("slices are fractions of the sum, and empty values have none", () => {
    const slices = slicesOf(["a", "b", "c", "d"], [1, null, 3, -1]);
    expect(slices.map(({ label, part, end }) => [label, part, end])).toEqual([
      ["a", 0.25, 0.25],
      ["c", 0.75, 1],
    ]);
    expect(slicesOf(["a"], [0])).toEqual([]);
  });

  test("overlapping labels are left out", () => {
    expect([labelInterval(4, 8), labelInterval(9, 8), labelInterval(100, 8)]).toEqual([1, 2, 13]);
  });
});

describe("changes", () => {
  const signs = (before: string, after: string) => diffLines(before, after).map(({ sign, text }) => sign + text);

  test.each([
    ["a\nb\nc", "a\nx\nc", [" a", "-b", "+x", " c"]],
    ["", "a\nb\n", ["+a", "+b"]],
    ["a\n", "", ["-a"]],
    ["a", "a", [" a"]],
    ["b\nc", "a\nb\nc", ["+a", " b", " c"]],
  ])("%j to %j", (before, after, lines) => {
    expect(signs(before, after)).toEqual(lines);
  });

  test("a very long diff lists all old lines, then all new lines", () => {
    const long = Array.from({ length: 1000 }, (_, place) => `line ${place}`).join("\n");
    expect(diffLines(long, `${long}\nmore`)).toHaveLength(2001);
  });

  test("a unified diff in a result is parsed, with the text before it", () => {
    const diff = parseUnifiedDiff("Changed a.py.\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n");
    expect(diff?.before).toBe("Changed a.py.");
    expect(diff?.lines.map(({ sign }) => sign).join("")).toBe("@ -+");
    expect(parseUnifiedDiff("--- no diff\nat all")).toBeNull();
  });
});

describe("arguments", () => {
  test.each([
    ["", "none"],
    ["{}", "none"],
    ['{"city": "Bonn"}', "json"],
    ["[1]", "json"],
    ['{"city": "Bo', "text"],
    ['{"command": "ls"}', "command"],
    ['{"filePath": "a", "searchContent": "x", "replaceContent": "y"}', "edit"],
    ['{"filePath": "a", "edits": [{"searchContent": "x", "replaceContent": "y"}]}', "edit"],
    ['{"filePath": "a", "content": "x"}', "edit"],
    ['{"filePath": "a"}', "json"],
    ['{"filePath": "a", "edits": [5]}', "json"],
  ])("%s is read as %s", (text, kind) => {
    expect(readArguments(text).kind).toBe(kind);
  });

  test("JSON results are indented, other results are unchanged", () => {
    expect(prettyText('{"a":1}')).toBe('{\n  "a": 1\n}');
    expect(prettyText("12")).toBe("12");
    expect(prettyText("no {json")).toBe("no {json");
  });
});

describe("S3: activating a skill", () => {
  const call = (result: string | null, name = "use_skill") => ({ name, result }) as ToolCall;
  const agent = (name: string, locale: string, variantOf: string | null, title: string) =>
    ({ name, locale, variantOf, skills: [{ name: "cooking", title }] }) as unknown as Agent;
  const agents = [agent("helper", "zh", null, "烹饪"), agent("helper-en", "en", "helper", "Cooking")];

  test("is read from the result", () => {
    expect(activatedSkill(call('{"status": "activated", "skill": "cooking"}'))).toBe("cooking");
    expect(activatedSkill(call('{"status": "need_info", "skill": "cooking"}'))).toBe("cooking");
    expect(activatedSkill(call('{"status": "activated", "skill": "core"}'))).toBeNull();
    expect(activatedSkill(call("Error: no such skill"))).toBeUndefined();
    expect(activatedSkill(call(null))).toBeUndefined();
    expect(activatedSkill(call('{"status": "activated", "skill": "cooking"}', "other"))).toBeUndefined();
  });

  test("shows the title in the page language, else the agent's title, else the name", () => {
    expect(skillTitle("cooking", agents[0]!, agents, "zh")).toBe("烹饪");
    expect(skillTitle("cooking", agents[0]!, agents, "en")).toBe("Cooking");
    expect(skillTitle("cooking", agents[0]!, [agents[0]!], "en")).toBe("烹饪");
    expect(skillTitle("sewing", agents[0]!, agents, "en")).toBe("sewing");
    expect(skillTitle("cooking", null, [], "en")).toBe("cooking");
  });
});
