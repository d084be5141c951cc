/**
 * Syntax highlighting for a few languages.
 *
 * It matches one regular expression per language in one pass, so its time is linear in the length of the code.
 */

type Kind = "comment" | "string" | "number" | "keyword" | "name" | "added" | "removed";
type Rule = readonly [Kind, string];

const END = "(?![\\s\\S])";
const HASH: Rule = ["comment", "(?<![^\\s;])#[^\\n]*"];
const SLASHES: Rule = ["comment", `//[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|${END})`];
const QUOTED = `"(?:[^"\\\\\\n]|\\\\.)*"?|'(?:[^'\\\\\\n]|\\\\.)*'?`;
const STRINGS: Rule = ["string", QUOTED];
const TEMPLATES: Rule = ["string", `${QUOTED}|\`(?:[^\`\\\\]|\\\\[\\s\\S])*\`?`];
const NUMBERS: Rule = ["number", "\\b(?:0[xX][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)(?:px|r?em|ms|s|vh|vw)?\\b|%\\B"];
const CALLS: Rule = ["name", "\\b[A-Za-z_]\\w*(?=\\()"];
const KEYS: Rule = ["name", `[\\w.-]+(?=:(?:\\s|${END}))`];

const keywords = (words: string): Rule => ["keyword", `\\b(?:${words.replaceAll(" ", "|")})\\b`];

const LANGUAGES: Readonly<Record<string, readonly Rule[]>> = {
  python: [
    HASH,
    ["string", `\\b[rbfuRBFU]{0,2}(?:"""[\\s\\S]*?(?:"""|${END})|'''[\\s\\S]*?(?:'''|${END}))|"""[\\s\\S]*?(?:"""|${END})|${QUOTED}`],
    NUMBERS,
    ["name", "@[\\w.]+"],
    keywords(
      "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return True try while with yield",
    ),
    CALLS,
  ],
  typescript: [
    SLASHES,
    TEMPLATES,
    NUMBERS,
    keywords(
      "abstract any as async await boolean break case catch class const continue declare default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null number of private public readonly return satisfies static string super switch this throw true try type typeof undefined unknown var void while yield",
    ),
    CALLS,
  ],
  json: [["name", `"(?:[^"\\\\\\n]|\\\\.)*"(?=\\s{0,9}:)`], STRINGS, NUMBERS, keywords("true false null")],
  bash: [
    HASH,
    STRINGS,
    ["name", "\\$(?:\\{[^}\\n]*\\}|[\\w@#?*!-]+)"],
    keywords("if then else elif fi for in do done while until case esac function return export local set cd echo exit source"),
    ["number", "(?<=\\s)--?[A-Za-z][\\w-]*"],
  ],
  xml: [
    ["comment", `<!--[\\s\\S]*?(?:-->|${END})`],
    ["keyword", "</?[A-Za-z!?][\\w:.-]*|/?>"],
    ["name", "[\\w:.-]+(?==)"],
    ["string", `(?<==)(?:"[^"]*"?|'[^']*'?)`],
  ],
  css: [SLASHES, STRINGS, ["keyword", "@[\\w-]+|!important"], ["number", "#[\\da-fA-F]{3,8}\\b"], NUMBERS, ["name", "[\\w-]+(?=:\\s)"]],
  sql: [
    ["comment", `--[^\\n]*|/\\*[\\s\\S]*?(?:\\*/|${END})`],
    STRINGS,
    NUMBERS,
    keywords(
      "add all alter and as asc begin between by case commit constraint create cross default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then union unique update using values view when where with",
    ),
    CALLS,
  ],
  yaml: [HASH, KEYS, STRINGS, NUMBERS, keywords("true false null yes no")],
  go: [
    SLASHES,
    TEMPLATES,
    NUMBERS,
    keywords(
      "bool break byte case chan const continue default defer else error fallthrough false float64 for func go if import int int64 interface map nil package range return select string struct switch true type var",
    ),
    CALLS,
  ],
  rust: [
    SLASHES,
    ["string", `b?"(?:[^"\\\\]|\\\\[\\s\\S])*"?|'(?:[^'\\\\\\n]|\\\\.)'`],
    NUMBERS,
    ["name", "\\b\\w+!|#!?\\[[^\\]\\n]*\\]"],
    keywords(
      "as async await bool break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static str String struct super trait true type u8 u32 u64 i32 i64 usize unsafe use where while",
    ),
    CALLS,
  ],
  java: [
    SLASHES,
    STRINGS,
    NUMBERS,
    ["name", "@\\w+"],
    keywords(
      "abstract boolean break byte case catch char class const continue default do double else enum extends false final finally float for if implements import instanceof int interface long new null package private protected public record return short static String super switch synchronized this throw throws true try var void while",
    ),
    CALLS,
  ],
  diff: [
    ["keyword", "^(?:@@|diff |index |--- |\\+\\+\\+ )[^\\n]*"],
    ["added", "^\\+[^\\n]*"],
    ["removed", "^-[^\\n]*"],
  ],
  markdown: [
    ["keyword", "^#{1,6} [^\\n]*"],
    ["string", "`[^`\\n]*`"],
    ["number", "^ {0,9}(?:[-*+]|\\d+\\.)(?= )"],
  ],
};

const ALIASES: Readonly<Record<string, string>> = {
  py: "python", python3: "python", js: "typescript", jsx: "typescript", mjs: "typescript", javascript: "typescript",
  ts: "typescript", tsx: "typescript", sh: "bash", shell: "bash", zsh: "bash", console: "bash", html: "xml", svg: "xml",
  scss: "css", yml: "yaml", golang: "go", rs: "rust", patch: "diff", md: "markdown", jsonc: "json",
};

/** Longer code stays plain, because each token is an element. */
const MAX_LENGTH = 20_000;
const compiled = new Map<string, RegExp>();

interface CodeToken {
  readonly text: string;
  readonly kind: Kind | null;
}

/** Split code into tokens. Code in an unknown language is one plain token. */
export function highlight(code: string, language: string): CodeToken[] {
  const name = ALIASES[language] ?? language;
  const rules = Object.hasOwn(LANGUAGES, name) ? LANGUAGES[name] : undefined;
  if (!rules || code.length > MAX_LENGTH) return [{ text: code, kind: null }];
  const tokens: CodeToken[] = [];
  let end = 0;
  for (const match of code.matchAll(expressionOf(name, rules))) {
    const kind = rules[match.slice(1).findIndex((group) => group !== undefined)]?.[0] ?? "name";
    if (match.index > end) tokens.push({ text: code.slice(end, match.index), kind: null });
    tokens.push({ text: match[0], kind });
    end = match.index + match[0].length;
  }
  return end < code.length ? [...tokens, { text: code.slice(end), kind: null }] : tokens;
}

function expressionOf(name: string, rules: readonly Rule[]): RegExp {
  const cached = compiled.get(name);
  if (cached) return cached;
  const expression = new RegExp(rules.map(([, source]) => `(${source})`).join("|"), name === "sql" ? "gim" : "gm");
  compiled.set(name, expression);
  return expression;
}
