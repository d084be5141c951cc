/** Cards: which urls are followed, where numbers stand on a chart, how a change reads, which skill was taken up. */

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

describe("urls", () => {
  test.each(["https://example.com/a?b#c", "HTTP://example.com", "mailto:anna@example.com", "/api/v1/files/1?sig=x"])(
    "%s is followed",
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
  ])("%s is not", (url) => {
    expect(safeLink(url)).toBeNull();
  });

  test("pictures are loaded from here and from inside the url only", () => {
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
  ])("%j stands between %d and %d", (series, least, most) => {
    const scale = scaleOf(series);
    expect([scale.min, scale.max]).toEqual([least, most]);
    expect(fractionOf(scale, scale.min)).toBe(0);
    expect(fractionOf(scale, scale.max)).toBe(1);
  });

  test("steps are round", () => {
    expect([0.3, 1, 1.2, 3, 7, 70].map(roundStep)).toEqual([0.5, 1, 2, 5, 10, 100]);
  });

  test("null is a gap", () => {
    expect(segmentsOf([1, null, 2, 3, null]).map((one) => one.map(({ place }) => place))).toEqual([[0], [2, 3]]);
  });

  test("slices are parts of a whole, and nothing has none", () => {
    const slices = slicesOf(["a", "b", "c", "d"], [1, null, 3, -1]);
    expect(slices.map(({ label, part, end }) => [label, part, end])).toEqual([
      ["a", 0.25, 0.25],
      ["c", 0.75, 1],
    ]);
    expect(slicesOf(["a"], [0])).toEqual([]);
  });

  test("labels that would stand on one another are thinned", () => {
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

  test("very long ones are told as all gone and all new", () => {
    const long = Array.from({ length: 1000 }, (_, place) => `line ${place}`).join("\n");
    expect(diffLines(long, `${long}\nmore`)).toHaveLength(2001);
  });

  test("a unified diff in a result is read, with what stands before it", () => {
    const read = parseUnifiedDiff("Changed a.py.\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n");
    expect(read?.before).toBe("Changed a.py.");
    expect(read?.lines.map(({ sign }) => sign).join("")).toBe("@ -+");
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

  test("results that are JSON have blanks, others are as they are", () => {
    expect(prettyText('{"a":1}')).toBe('{\n  "a": 1\n}');
    expect(prettyText("12")).toBe("12");
    expect(prettyText("no {json")).toBe("no {json");
  });
});

describe("S3: taking up a skill", () => {
  const call = (result: string | null, name = "use_skill") => ({ name, result }) as ToolCall;
  const agent = (name: string, locale: string, variantOf: string | null, title: string) =>
    ({ name, locale, variantOf, skills: [{ name: "bazi", title }] }) as unknown as Agent;
  const agents = [agent("vibe", "zh", null, "八字命理"), agent("vibe-en", "en", "vibe", "Bazi")];

  test("is told from the result alone", () => {
    expect(activatedSkill(call('{"status": "activated", "skill": "bazi"}'))).toBe("bazi");
    expect(activatedSkill(call('{"status": "need_info", "skill": "bazi"}'))).toBe("bazi");
    expect(activatedSkill(call('{"status": "activated", "skill": "core"}'))).toBeNull();
    expect(activatedSkill(call("Error: no such skill"))).toBeUndefined();
    expect(activatedSkill(call(null))).toBeUndefined();
    expect(activatedSkill(call('{"status": "activated", "skill": "bazi"}', "other"))).toBeUndefined();
  });

  test("its title is that of the page's language, else the agent's, else its name", () => {
    expect(skillTitle("bazi", agents[0]!, agents, "zh")).toBe("八字命理");
    expect(skillTitle("bazi", agents[0]!, agents, "en")).toBe("Bazi");
    expect(skillTitle("bazi", agents[0]!, [agents[0]!], "en")).toBe("八字命理");
    expect(skillTitle("tarot", agents[0]!, agents, "en")).toBe("tarot");
    expect(skillTitle("bazi", null, [], "en")).toBe("bazi");
  });
});
