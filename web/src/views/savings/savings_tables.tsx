/** The figures as tables: the sum of all, by rule, by agent, and breaks by their cause. */

import type { ComponentChildren } from "preact";

import type { Savings } from "../../api/routes.ts";
import { formatMoney, formatNumber } from "../../language/language.ts";
import { causeInWords } from "../inspector/changes/difference_rows.ts";
import { ruleInWords } from "../inspector/parts/reasons.ts";
import { byAgent, byCause, byRule, netOf, totalOf, type Sum } from "./sums.ts";
import { words } from "./words.ts";

export function SavingsTables({ savings }: { savings: Savings }) {
  const text = words.value;
  const rules = byRule(savings);
  const breaks = byCause(savings);
  const { currency } = savings;
  const names = new Map(savings.rules.map(({ rule, ruleName }) => [rule, ruleName ?? undefined]));
  const nameOf = (rule: string) => `${rule} ${ruleInWords(rule, names.get(rule))}`.trim();
  return (
    <>
      <Total sum={totalOf(rules)} currency={currency} />
      {rules.length > 0 && (
        <>
          <FoldTable title={text.byRule} first={text.rule} sums={rules} {...{ currency, nameOf }} />
          <FoldTable title={text.byAgent} first={text.agent} sums={byAgent(savings)} currency={currency} nameOf={asItIs} />
        </>
      )}
      <section class="savings-section">
        <h2>{text.breaks}</h2>
        <p class="soft small">{breaks.length ? text.breaksAbout : text.noBreaks}</p>
        {breaks.length > 0 && <BreakTable sums={breaks} currency={currency} />}
      </section>
    </>
  );
}

const asItIs = (name: string) => name;

function Total({ sum, currency }: { sum: Sum; currency: string }) {
  const text = words.value;
  if (sum.count === 0) return <p class="savings-total">{text.nothing}</p>;
  return (
    <dl class="savings-total">
      <div>
        <dt>{text.tokens}</dt>
        <dd>{formatNumber(sum.tokens)}</dd>
      </div>
      <div>
        <dt>{text.net}</dt>
        <dd>{money(netOf(sum), currency)}</dd>
      </div>
    </dl>
  );
}

interface FoldProps {
  readonly title: string;
  readonly first: string;
  readonly sums: readonly Sum[];
  readonly currency: string;
  readonly nameOf: (name: string) => string;
}

function FoldTable({ title, first, sums, currency, nameOf }: FoldProps) {
  const text = words.value;
  return (
    <section class="savings-section">
      <h2>{title}</h2>
      <Table title={title} heads={[first, text.tokens, text.saved, text.cost, text.net]}>
        {sums.map((sum) => (
          <Row
            key={sum.name}
            name={nameOf(sum.name)}
            figures={[
              formatNumber(sum.tokens),
              money(sum.saved, currency),
              money(sum.cost, currency),
              money(netOf(sum), currency),
            ]}
          />
        ))}
      </Table>
    </section>
  );
}

function BreakTable({ sums, currency }: { sums: readonly Sum[]; currency: string }) {
  const text = words.value;
  return (
    <Table title={text.breaks} heads={[text.cause, text.times, text.sentAgain, text.cost]}>
      {sums.map((sum) => (
        <Row
          key={sum.name}
          name={causeInWords(sum.name)}
          figures={[formatNumber(sum.count), formatNumber(sum.tokens), money(sum.cost, currency)]}
        />
      ))}
    </Table>
  );
}

interface TableProps {
  readonly title: string;
  readonly heads: readonly string[];
  readonly children: ComponentChildren;
}

/** On a phone it is wider than the page: then it is scrolled by itself, with the keyboard too. */
function Table({ title, heads, children }: TableProps) {
  return (
    <div class="savings-table" tabIndex={0} role="region" aria-label={title}>
      <table>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

function Row({ name, figures }: { name: string; figures: readonly string[] }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      {figures.map((figure, at) => (
        <td key={at}>{figure}</td>
      ))}
    </tr>
  );
}

function money(nano: number | null, currency: string): string {
  return nano === null ? words.value.unknown : formatMoney(nano, currency);
}
