/** Line diffs. */

export interface DiffLine {
  readonly sign: "+" | "-" | " " | "@";
  readonly text: string;
}

/** Larger comparisons list all old lines, then all new lines. */
const MAX_CELLS = 400_000;

export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [was, is] = [linesOf(before), linesOf(after)];
  if (was.length * is.length > MAX_CELLS) return [...linesWithSign("-", was), ...linesWithSign("+", is)];
  const common = commonLineCounts(was, is);
  const lines: DiffLine[] = [];
  for (let old = 0, now = 0; old < was.length || now < is.length; ) {
    if (old < was.length && now < is.length && was[old] === is[now]) {
      lines.push({ sign: " ", text: was[old] as string });
      old += 1;
      now += 1;
    } else if (old < was.length && at(common, old + 1, now) >= at(common, old, now + 1)) {
      lines.push({ sign: "-", text: was[old] as string });
      old += 1;
    } else {
      lines.push({ sign: "+", text: is[now] as string });
      now += 1;
    }
  }
  return lines;
}

/** Parse a unified diff in a tool result, such as that of filesystem-edit. Return null if there is none. */
export function parseUnifiedDiff(text: string): { readonly before: string; readonly lines: readonly DiffLine[] } | null {
  const start = text.search(/^--- .*\n\+\+\+ .*\n@@ /m);
  if (start < 0) return null;
  const lines = linesOf(text.slice(start)).slice(2).map((line): DiffLine => {
    const sign = line.startsWith("@@") ? "@" : line.startsWith("+") ? "+" : line.startsWith("-") ? "-" : " ";
    return { sign, text: sign === "@" ? line : line.slice(1) };
  });
  return { before: text.slice(0, start).trim(), lines };
}

/** Return the length of the longest common subsequence from each pair of lines on. */
function commonLineCounts(was: readonly string[], is: readonly string[]): readonly Uint32Array[] {
  const table = Array.from({ length: was.length + 1 }, () => new Uint32Array(is.length + 1));
  for (let old = was.length - 1; old >= 0; old -= 1) {
    for (let now = is.length - 1; now >= 0; now -= 1) {
      const row = table[old] as Uint32Array;
      row[now] =
        was[old] === is[now] ? at(table, old + 1, now + 1) + 1 : Math.max(at(table, old + 1, now), at(table, old, now + 1));
    }
  }
  return table;
}

function at(table: readonly Uint32Array[], old: number, now: number): number {
  return table[old]?.[now] ?? 0;
}

function linesWithSign(sign: "+" | "-", lines: readonly string[]): DiffLine[] {
  return lines.map((text) => ({ sign, text }));
}

function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}
