/** Markdown of models: rendering, and no scripts or remote content. */

import { h, render } from "preact";
import { describe, expect, test } from "vitest";

import { highlight } from "../src/parts/markdown/highlight.ts";
import { extendBlocks, Markdown, parseBlocks } from "../src/parts/markdown/markdown.tsx";

function renderMarkdown(text: string): HTMLElement {
  const place = document.createElement("div");
  render(h(Markdown, { text }), place);
  return place;
}

const HOSTILE = [
  "<script>alert(1)</script>",
  "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
  "<img src=x onerror=alert(1)>",
  "<img src=x onerror=alert(1)//",
  "<svg onload=alert(1)>",
  "<svg><script>alert(1)</script></svg>",
  "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
  "<svg><a xlink:href='javascript:alert(1)'><text y=20>x</text></a></svg>",
  "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
  "<iframe src=javascript:alert(1)></iframe>",
  "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
  "<object data=javascript:alert(1)></object>",
  "<embed src=javascript:alert(1)>",
  "<base href='javascript:alert(1)//'>",
  "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
  "<link rel=stylesheet href=//evil.example/x.css>",
  "<style>*{background:url(//evil.example)}</style>",
  "<form action=javascript:alert(1)><button>x</button></form>",
  "<button formaction=javascript:alert(1)>x</button>",
  "<input autofocus onfocus=alert(1)>",
  "<details open ontoggle=alert(1)>",
  "<video><source onerror=alert(1)></video>",
  "<body onload=alert(1)>",
  "<a href='javascript:alert(1)'>x</a>",
  "<div style='background:url(javascript:alert(1))'>x</div>",
  "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
  "<template><img src=x onerror=alert(1)></template>",
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](javascript&colon;alert(1))",
  "[x](&#106;avascript:alert(1))",
  "[x](\u0001javascript:alert(1))",
  "[x](java\tscript:alert(1))",
  "[x](vbscript:msgbox(1))",
  "[x](data:text/html,<script>alert(1)</script>)",
  "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
  "[x](file:///etc/passwd)",
  "[x](//evil.example)",
  '[x](https://a.example "onmouseover=alert(1)")',
  '[x](https://a.example/"onmouseover="alert(1))',
  "[x](https://a.example/'onmouseover='alert(1))",
  "![x](javascript:alert(1))",
  "![x](https://evil.example/track.png)",
  '![x" onerror="alert(1)](https://a.example/y.png)',
  "![x](data:image/svg+xml,<svg onload=alert(1)>)",
  "<javascript:alert(1)>",
  "[a]: javascript:alert(1)\n\n[a]",
  "`<img src=x onerror=alert(1)>`",
  "```html\n<img src=x onerror=alert(1)><script>alert(1)</script>\n```",
  '```"><img src=x onerror=alert(1)>\ncode\n```',
  "| <img src=x onerror=alert(1)> | b |\n|---|---|\n| <svg onload=alert(1)> | [x](javascript:alert(1)) |",
  "- <img src=x onerror=alert(1)>\n  - [x](javascript:alert(1))",
  "> <script>alert(1)</script>\n> > [x](data:text/html,x)",
  "# <img src=x onerror=alert(1)>",
  "[<img src=x onerror=alert(1)>](https://a.example)",
  "**<b onclick=alert(1)>x</b>**",
  "a <pre> < img src=x onerror=alert(1)> <img src=x onerror=alert(1)",
  "a <script> <svg/onload=alert(1)",
  "<<script>script>alert(1)<</script>/script>",
  "<img src=x\nonerror=alert(1)>",
  "<a\u000chref=javascript:alert(1)>x</a>",
  "<!--><img src=x onerror=alert(1)>-->",
  "<![CDATA[<img src=x onerror=alert(1)>]]>",
  "<?xml <img src=x onerror=alert(1)> ?>",
];

const ALLOWED_TAGS = new Set(
  "A BLOCKQUOTE BR BUTTON CODE DEL DIV EM H3 HR LI OL P PRE SPAN STRONG TABLE TBODY TD TH THEAD TR UL".split(" "),
);

describe("no script runs and nothing loads", () => {
  test.each(HOSTILE)("%s", (text) => {
    for (const element of renderMarkdown(text).querySelectorAll("*")) {
      expect(ALLOWED_TAGS).toContain(element.tagName);
      for (const name of element.getAttributeNames()) {
        expect(name).not.toMatch(/^on|^style$|^src|^data|^xlink|action/i);
      }
      const href = element.getAttribute("href");
      if (href !== null) expect(href).toMatch(/^(https?:\/\/|mailto:)/);
      expect(element.tagName !== "BUTTON" || element.className.includes("copy-code")).toBe(true);
    }
  });
});

test("HTML stays text", () => {
  expect(renderMarkdown("<b>bold</b> and <br>").textContent).toContain("<b>bold</b> and <br>");
  expect(renderMarkdown("<div>\nblock\n</div>").textContent).toContain("<div>");
});

test("links open in a new tab without a referrer", () => {
  const link = renderMarkdown("[here](https://example.com/a?b=1&c=2)").querySelector("a");
  expect(link?.getAttribute("href")).toBe("https://example.com/a?b=1&c=2");
  expect(link?.target).toBe("_blank");
  expect(link?.rel).toBe("noopener noreferrer");
});

test("an image becomes a link with its alt text", () => {
  const place = renderMarkdown("![a cat](https://example.com/cat.png)");
  expect(place.querySelector("img")).toBeNull();
  expect(place.querySelector("a")?.textContent).toBe("a cat");
});

test("code has syntax colors and a copy button", () => {
  const place = renderMarkdown("```python\nreturn 1 # one\n```");
  expect(place.querySelector("code")?.textContent).toBe("return 1 # one");
  expect(place.querySelector(".code-keyword")?.textContent).toBe("return");
  expect(place.querySelector(".code-comment")?.textContent).toBe("# one");
  expect(place.querySelector("button.copy-code")?.textContent).toBe("Copy");
});

test("syntax colors change no character of the code", () => {
  const code = "def f(x):\n  '''<b>'''\n  return \"a\\\"&\" + x /* 1 */ // -- <!-- `t` $A 0x1F\n+a\n-b";
  const languages = "python js json bash html css sql yaml go rust java diff markdown".split(" ");
  for (const language of languages) {
    const tokens = highlight(code, language);
    expect(tokens.map(({ text }) => text).join(""), language).toBe(code);
    expect(tokens.length, language).toBeGreaterThan(1);
  }
  expect(highlight(code, "constructor")).toEqual([{ text: code, kind: null }]);
});

test("tables keep the alignment of their columns", () => {
  const place = renderMarkdown("| a | b |\n|---|--:|\n| 1 | 2 |");
  expect(place.querySelector("tbody td:last-child")?.className).toBe("align-right");
  expect(place.querySelector(".table-scroll > table")).not.toBeNull();
});

const LONG = "# One\n\nText *with* things\n\n- a\n- b\n\n- c\n\n```js\nlet a;\n\nlet b;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> q\nlazy\n\nEnd\n===\n\n1. x\n   y\n";

test("growing text gives the same blocks as the whole text", () => {
  let blocks = parseBlocks("");
  for (let length = 1; length <= LONG.length; length += 1) {
    const text = LONG.slice(0, length);
    blocks = extendBlocks(blocks, text);
    expect(JSON.stringify(blocks.tokens), text).toBe(JSON.stringify(parseBlocks(text).tokens));
  }
});

test("complete blocks keep their identity", () => {
  const before = extendBlocks(null, "One\n\nTwo\n\nThr");
  const after = extendBlocks(before, "One\n\nTwo\n\nThree");
  expect(after.tokens[0]).toBe(before.tokens[0]);
  expect(after.tokens[2]).toBe(before.tokens[2]);
  expect(after.tokens.at(-1)?.raw).toBe("Three");
});
