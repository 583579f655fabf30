import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';

/** What the tests read of a resource of Kubernetes. */
export interface Resource {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels: Record<string, string> };
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

/** The resources that Helm renders from the chart; omitted values take their defaults. Throws the error of Helm. */
export function renderChart(values: Values = {}, release = 'history', options: readonly string[] = []): Resource[] {
  const { status, stdout, stderr } = spawnSync(
    'helm',
    ['template', release, chartFolder, '--values', '-', ...options],
    { input: JSON.stringify(values), encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(stderr);
  return parseAllDocuments(stdout, { strict: true, uniqueKeys: true }).map((document) => {
    if (document.errors.length > 0) throw new Error(document.errors.join('\n'));
    return document.toJS();
  });
}
