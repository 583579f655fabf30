import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { GoTemplates } from './go-template.ts';

/** What the tests read of a resource of Kubernetes. */
export interface Resource {
  kind: string;
  spec: {
    selector: Record<string, unknown>;
    ports: { name: string; targetPort: string }[];
    template: { metadata: { labels: Record<string, string> }; spec: Pod };
  };
}

export interface Pod {
  terminationGracePeriodSeconds: number;
  securityContext: { runAsUser: number; runAsGroup: number };
  containers: Container[];
}

export interface Container {
  env: { name: string; value?: string }[];
  ports: object[];
  securityContext: object;
  startupProbe: Probe;
  livenessProbe: Probe;
  readinessProbe: Probe;
}

interface Probe {
  httpGet: { path: string; port: string };
  failureThreshold: number;
}

export interface Values {
  [name: string]: unknown;
}

export const chartFolder = join(import.meta.dirname, '../../../deploy/helm/annals');

export function defaultValues(): Values {
  return parse(readFileSync(join(chartFolder, 'values.yaml'), 'utf8'));
}

/** The resources that the chart makes of the values. Values that are not given are the defaults, as in Helm. */
export function renderChart(values: Values = {}): Resource[] {
  const { version, appVersion } = parse(readFileSync(join(chartFolder, 'Chart.yaml'), 'utf8'));
  const root = {
    Values: merged(defaultValues(), values),
    Release: { Name: 'history', Service: 'Helm' },
    Chart: { Version: version, AppVersion: appVersion },
  };
  const templates = new GoTemplates();
  const folder = join(chartFolder, 'templates');
  const files = readdirSync(folder).sort();
  const parsed = files.map((file) => templates.parse(readFileSync(join(folder, file), 'utf8')));
  return parsed
    .flatMap((nodes) => parseAllDocuments(templates.render(nodes, root), { strict: true, uniqueKeys: true }))
    .map((document) => {
      if (document.errors.length > 0) throw new Error(document.errors.join('\n'));
      return document.toJS();
    })
    .filter((resource) => resource !== null);
}

function merged(defaults: Values, values: Values): Values {
  const all = { ...defaults };
  for (const [name, value] of Object.entries(values)) {
    const old = all[name];
    all[name] = isMap(old) && isMap(value) ? merged(old, value) : value;
  }
  return all;
}

function isMap(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
