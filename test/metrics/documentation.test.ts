import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Type } from 'typebox';
import { Parse } from 'typebox/value';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { dashboard } from '../../deploy/grafana/dashboard.ts';
import { metricDefinitions } from '../../src/metrics/definitions.ts';

const root = join(import.meta.dirname, '..', '..');
const page = readFileSync(join(root, 'docs', 'metrics.md'), 'utf8');
const names = Object.keys(metricDefinitions);

const Rules = Type.Object({
  groups: Type.Array(
    Type.Object({
      rules: Type.Array(
        Type.Object({
          alert: Type.String(),
          expr: Type.String(),
          labels: Type.Object({ severity: Type.String() }),
          annotations: Type.Object({ summary: Type.String(), runbook: Type.String() }),
        }),
      ),
    }),
  ),
});
const Dashboard = Type.Object({
  panels: Type.Array(
    Type.Object({
      id: Type.Number(),
      type: Type.String(),
      targets: Type.Optional(Type.Array(Type.Object({ expr: Type.String() }))),
    }),
  ),
});

const rules = Parse(
  Rules,
  parse(readFileSync(join(root, 'deploy', 'prometheus', 'alerts.yaml'), 'utf8')),
).groups.flatMap((group) => group.rules);
const { panels } = Parse(Dashboard, dashboard());

/** The metrics of a query, and the labels that it names of each. */
function metricsIn(expression: string): string[] {
  return [...expression.matchAll(/\bannals_[a-z0-9_]+/g)].map(([name]) => {
    const base = name.replace(/_(bucket|sum|count)$/, '');
    return names.includes(name) ? name : base;
  });
}

function labelsIn(expression: string): string[] {
  const selected = [...expression.matchAll(/\{([^}]*)\}/g)].flatMap(([, inside = '']) =>
    [...inside.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label),
  );
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, inside = '']) => inside.split(/,\s*/));
  return [...selected, ...grouped];
}

test('the table of docs/metrics.md has every metric with its type and labels, and no other', () => {
  const rows = [...page.matchAll(/^\| `(annals_[a-z0-9_]+)` \| (\w+) \| (.*?) \| (.+?) \| (\w+) \|$/gm)];
  const documented = rows.map(([, name, type, labels = '', help, aggregation]) => ({
    name,
    type,
    labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
    help,
    aggregation,
  }));
  const defined = Object.entries(metricDefinitions).map(([name, { type, labels = [], help, aggregation = 'sum' }]) => ({
    name,
    type,
    labels: [...labels],
    help,
    aggregation,
  }));
  expect(documented).toEqual(defined);
});

test('names have the units of Prometheus, and only counters end with _total', () => {
  for (const [name, { type, buckets }] of Object.entries(metricDefinitions)) {
    expect(name).toMatch(/^annals_[a-z][a-z0-9]*(_[a-z0-9]+)*$/);
    expect(name.endsWith('_total'), name).toBe(type === 'counter');
    expect(name).not.toMatch(/milli|_ms\b|kilo|mega|percent/);
    if (type === 'histogram') expect(name).toMatch(/_seconds$/);
    expect(buckets !== undefined, name).toBe(type === 'histogram');
  }
});

test('each alert uses metrics and labels that exist, and has its paragraph', () => {
  expect(rules.length).toBeGreaterThan(15);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  const headings = [...page.matchAll(/^### (\w+)$/gm)].map(([, heading = '']) => heading);
  expect(rules.map(({ alert }) => alert)).toEqual(headings);
  for (const { alert, expr, labels, annotations } of rules) {
    expect(annotations.runbook).toBe(`docs/metrics.md#${alert.toLowerCase()}`);
    expect(['critical', 'warning', 'info']).toContain(labels.severity);
    expect(annotations.summary.length).toBeGreaterThan(10);
    expectToExist(expr);
  }
});

test('each panel of the dashboard uses metrics and labels that exist, and each metric is in a panel', () => {
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  for (const { id, type, targets = [] } of panels) expect(targets.length > 0, `panel ${id}`).toBe(type !== 'row');
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  for (const expression of expressions) expectToExist(expression);
  expect(names.filter((name) => !expressions.flatMap(metricsIn).includes(name))).toEqual([]);
});

test('the expressions of alerts and panels are PromQL', async () => {
  const grammar: string = '@prometheus-io/lezer-promql';
  const { parser }: Promql = await import(grammar);
  const faultsOf = (expression: string) => {
    const faults: string[] = [];
    parser.parse(expression).iterate({
      enter({ type, from }) {
        if (type.isError) faults.push(`${expression.slice(0, from)}⚠${expression.slice(from)}`);
      },
    });
    return faults;
  };
  const ofPanels = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  for (const expression of [...rules.map(({ expr }) => expr), ...ofPanels]) {
    // Grafana puts its variables in before Prometheus reads an expression.
    expect(faultsOf(expression.replaceAll(/\$__\w+/g, '5m').replaceAll(/\$\w+/g, 'x'))).toEqual([]);
  }
  expect(faultsOf('min(annals_database_up) == 0')).toEqual([]);
  for (const wrong of ['min(annals_database_up == 0', 'rate(annals_folds_total[5x])', 'a == = 1']) {
    expect(faultsOf(wrong), wrong).not.toEqual([]);
  }
});

/** What the test uses of the grammar of Prometheus' own editor. */
interface Promql {
  parser: {
    parse(text: string): {
      iterate(visitor: { enter(node: { type: { isError: boolean }; from: number }): void }): void;
    };
  };
}

function expectToExist(expression: string): void {
  const used = metricsIn(expression);
  if (!/^up\{/.test(expression)) expect(used, expression).not.toEqual([]);
  for (const name of used) expect(names, expression).toContain(name);
  const known = new Set<string>(['instance', 'job', 'le']);
  for (const [name, { labels = [] }] of Object.entries(metricDefinitions)) {
    if (used.includes(name)) for (const label of labels) known.add(label);
  }
  for (const label of labelsIn(expression)) expect([...known], expression).toContain(label);
}
