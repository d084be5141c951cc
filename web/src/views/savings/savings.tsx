/** Savings page: what folding saved by rule and agent, and what broke prompt caches. */

import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";

import type { Savings } from "../../api/routes.ts";
import { bilingual, formatMoney, formatNumber } from "../../language/language.ts";
import { PageBar } from "../../parts/page_bar.tsx";
import { causeText } from "../inspector/change_words.ts";
import { ruleText } from "../inspector/parts/reasons.ts";
import "./savings.css";
import { byAgent, byCause, byRule, netOf, PERIODS, SavingsState, type Sum, totalOf } from "./savings_state.ts";

export function SavingsPage({ onOpenList }: { onOpenList: () => void }) {
  const state = useMemo(() => new SavingsState(), []);
  useEffect(() => void state.load(), []);
  const text = words.value;
  return (
    <>
      <PageBar title={text.title} onOpenList={onOpenList} />
      <div class="savings-scroll">
        <div class="savings">
          <p>{text.about}</p>
          <Choices state={state} />
          <div aria-live="polite">
            {state.problem.value !== null ? (
              <div class="problem" role="alert">
                <p>{state.problem.value}</p>
                <button type="button" onClick={() => void state.load()}>
                  {text.tryAgain}
                </button>
              </div>
            ) : state.savings.value === null ? (
              <p class="soft">{text.loading}</p>
            ) : (
              <SavingsTables savings={state.savings.value} />
            )}
          </div>
        </div>
      </div>
    </>
  );
}

const ALL = "";

function Choices({ state }: { state: SavingsState }) {
  const text = words.value;
  return (
    <div class="savings-choices">
      <label>
        {text.period}
        <select
          value={String(state.days.value ?? ALL)}
          onChange={(event) => {
            const { value } = event.currentTarget;
            state.days.value = value === ALL ? null : Number(value);
            void state.load();
          }}
        >
          {PERIODS.map((days) => (
            <option key={days} value={days ?? ALL}>
              {days === null ? text.allTime : text.days(days)}
            </option>
          ))}
        </select>
      </label>
      <label>
        {text.agent}
        <select
          value={state.agent.value ?? ALL}
          onChange={(event) => {
            state.agent.value = event.currentTarget.value || null;
            void state.load();
          }}
        >
          <option value={ALL}>{text.allAgents}</option>
          {state.agents.value.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function SavingsTables({ savings }: { savings: Savings }) {
  const text = words.value;
  const rules = byRule(savings);
  const breaks = byCause(savings);
  const { currency } = savings;
  const names = new Map(savings.rules.map(({ rule, ruleName }) => [rule, ruleName ?? undefined]));
  const nameOf = (rule: string) => `${rule} ${ruleText(rule, names.get(rule))}`.trim();
  return (
    <>
      <Total sum={totalOf(rules)} currency={currency} />
      {rules.length > 0 && (
        <>
          <FoldTable title={text.byRule} first={text.rule} sums={rules} {...{ currency, nameOf }} />
          <FoldTable title={text.byAgent} first={text.agent} sums={byAgent(savings)} currency={currency} nameOf={(name) => name} />
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
          name={causeText(sum.name)}
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

/** On narrow screens the table scrolls on its own, also by keyboard. */
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

export const words = bilingual(
  {
    title: "Savings",
    about:
      "Folding removes old tool results from later calls, so those calls cost less. These figures estimate how much more your calls would cost without folding, at the prices this server knows. Models count tokens differently, so treat them as estimates.",
    period: "Period",
    days: (count: number) => `Last ${count} days`,
    allTime: "All time",
    agent: "Agent",
    allAgents: "All agents",
    loading: "Loading…",
    tryAgain: "Try again",
    nothing: "No savings in this period. Folding starts when conversations with tools get long.",
    tokens: "Tokens saved",
    saved: "Saved",
    cost: "Cost",
    net: "Net savings",
    byRule: "By rule",
    byAgent: "By agent",
    rule: "Rule",
    unknown: "unknown",
    breaks: "Prefix breaks",
    breaksAbout:
      "When a page doesn't start with the entire previous page, the provider processes everything after the first difference again. The cost above includes the breaks that folding caused.",
    noBreaks: "No prefix breaks: every page started with the entire previous page.",
    cause: "Cause",
    times: "Count",
    sentAgain: "Tokens reprocessed",
  },
  {
    title: "折叠节省",
    about:
      "折叠会把旧的工具结果从之后的调用中移除，从而降低费用。这里按服务器已知的价格，估算不折叠时你的调用会多花多少。各模型计算 token 的方式不同，数字仅供参考。",
    period: "时段",
    days: (count) => `最近 ${count} 天`,
    allTime: "全部时间",
    agent: "智能体",
    allAgents: "全部智能体",
    loading: "正在加载…",
    tryAgain: "重试",
    nothing: "这段时间没有节省。使用工具的对话变长后才会开始折叠。",
    tokens: "节省的 token",
    saved: "节省",
    cost: "代价",
    net: "净节省",
    byRule: "按规则",
    byAgent: "按智能体",
    rule: "规则",
    unknown: "未知",
    breaks: "前缀断开",
    breaksAbout: "如果页面没有以上一次的整个页面开头，服务商就要重新处理第一处差异之后的全部内容。折叠造成的前缀断开已计入上面的代价。",
    noBreaks: "没有前缀断开：每个页面都以上一次的整个页面开头。",
    cause: "原因",
    times: "次数",
    sentAgain: "重新处理的 token",
  },
);
