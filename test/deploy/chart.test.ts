import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { kubernetesFaults } from '../support/chart/kubernetes-faults.ts';
import { type Container, chartFolder, type Resource, renderChart, type Values } from '../support/chart/render-chart.ts';
import { knownVariables, secretVariables } from '../support/chart/variables.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const dockerfile = read('Dockerfile');

/** Values that make the chart render everything that it can. */
const allValues: Values = {
  image: { repository: 'registry.example/annals', tag: '1.2.3' },
  imagePullSecrets: [{ name: 'registry' }],
  env: { ANNALS_BASE_URL: 'https://annals.example.com', ANNALS_TENANT_RATE: 50, ANNALS_CONSOLE_INSECURE: false },
  secretEnv: { ANNALS_SHARED_PROVIDER_TOKEN: { secret: 'provider', key: 'token' } },
  recorder: { port: 8081, mappingConfigMap: 'mapping' },
  metrics: { port: 9464 },
  service: { annotations: { a: 'b' } },
  ingress: { enabled: true, className: 'nginx', tlsSecret: 'tls', annotations: { c: 'd' } },
  podAnnotations: { e: 'f' },
  podLabels: { g: 'h' },
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ key: 'k', operator: 'Exists' }],
  affinity: { nodeAffinity: {} },
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' }],
};

test('Helm finds no fault in the chart', () => {
  const { status, stdout } = spawnSync('helm', ['lint', '--strict', chartFolder], { encoding: 'utf8' });
  expect(status, stdout).toBe(0);
});

test('the chart renders without and with everything, and names are those of the release', () => {
  expect(kindsOf(renderChart())).toEqual(['Deployment', 'PodDisruptionBudget', 'Service']);
  expect(kindsOf(renderChart(allValues))).toEqual(['Deployment', 'Ingress', 'PodDisruptionBudget', 'Service']);
  expect(kindsOf(renderChart({ podDisruptionBudget: { enabled: false } }))).toEqual(['Deployment', 'Service']);
  for (const resource of renderChart(allValues)) expect(resource).toHaveProperty('metadata.name', 'history');
});

test.each([
  ['the defaults', {}],
  ['everything', allValues],
  ...Object.entries(allValues).map(([name, value]): [string, Values] => [name, { [name]: value }]),
])('Kubernetes knows each member that %s renders, and takes its value', async (_name, values) => {
  for (const resource of renderChart(values)) expect(await kubernetesFaults(resource), resource.kind).toEqual([]);
});

test('what Kubernetes would refuse or ignore is found', async () => {
  const faultsOf = async (change: (resource: Resource) => object) => {
    const deployment = find('Deployment');
    return await kubernetesFaults(Object.assign(deployment, change(deployment)));
  };
  const none = await faultsOf(() => ({}));
  const misspelt = await faultsOf(({ spec }) => ({ spec: { ...spec, replica: 2 } }));
  const ofWrongType = await faultsOf(({ spec }) => ({ spec: { ...spec, replicas: '2' } }));
  const missing = await faultsOf(({ spec: { template } }) => ({ spec: { template } }));
  expect(none).toEqual([]);
  expect(misspelt).toEqual(['/spec/replica is unknown']);
  expect(ofWrongType).toEqual([expect.stringMatching(/^\/spec\/replicas type/)]);
  expect(missing).toEqual([expect.stringMatching(/^\/spec required .*selector/)]);
  await expect(faultsOf(() => ({ apiVersion: 'apps/v2' }))).rejects.toThrow('Kubernetes has no apps/v2 Deployment');
});

test('names and labels are as short as Kubernetes wants them, whatever the name of the release', () => {
  // Helm takes names of up to 53 characters.
  for (const release of ['a', 'a'.repeat(53), `${'a'.repeat(51)}-b`]) {
    for (const { metadata } of renderChart({}, release)) {
      expect(metadata.name).toMatch(/^[a-z]([-a-z0-9]{0,50}[a-z0-9])?$/);
      for (const label of Object.values(metadata.labels))
        expect(label).toMatch(/^[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/);
    }
  }
});

test('the chart installs on Kubernetes from 1.27 on', () => {
  expect(renderChart({}, 'history', ['--kube-version', '1.27.0'])).not.toEqual([]);
  expect(() => renderChart({}, 'history', ['--kube-version', '1.26.9'])).toThrow('kubeVersion: >=1.27.0');
});

test('every variable of the container is one of the settings, and each secret is a reference', () => {
  const [container] = containersOf(renderChart(allValues));
  const names = container?.env.map(({ name }) => name) ?? [];
  const known = knownVariables();
  expect(names).toContain('ANNALS_SECRET_KEY');
  expect(names.filter((name) => !known.has(name))).toEqual([]);
  const secret = container?.env.filter(({ name }) => secretVariables.test(name)) ?? [];
  expect(secret.length).toBeGreaterThan(2);
  for (const variable of secret) expect(variable, variable.name).toHaveProperty('valueFrom.secretKeyRef.name');
});

test('pods are replaced one by one, after the new one is ready, and a budget keeps others', () => {
  const [deployment, budget] = [find('Deployment'), find('PodDisruptionBudget')];
  expect(deployment.spec).toMatchObject({
    replicas: 2,
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
  });
  expect(budget.spec).toMatchObject({ maxUnavailable: 1, selector: deployment.spec.selector });
  const { labels } = deployment.spec.template.metadata;
  expect(deployment.spec.selector.matchLabels).toEqual(find('Service').spec.selector);
  expect(labels).toMatchObject(find('Service').spec.selector);
  // More than the 30 seconds that requests in flight have.
  expect(deployment.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(30);
});

test('the container runs as the user of the image, on a read-only file system', () => {
  const pod = find('Deployment').spec.template.spec;
  expect(pod).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsNonRoot: true } });
  expect(pod.containers[0]?.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  expect(dockerfile).toContain(`USER ${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}\n`);
});

test('ports and the paths of probes are those of the service', () => {
  const [container] = containersOf(renderChart(allValues));
  const port = container?.env.find(({ name }) => name === 'PORT')?.value;
  expect(container?.ports).toEqual([
    { name: 'http', containerPort: Number(port) },
    { name: 'recorder', containerPort: 8081 },
    { name: 'metrics', containerPort: 9464 },
  ]);
  expect(find('Service', allValues).spec.ports.map(({ targetPort }) => targetPort)).toEqual(['http', 'recorder']);
  expect(dockerfile).toContain(`EXPOSE ${port}\n`);

  const routes = read('src/http/health/health-routes.ts');
  const { startupProbe, livenessProbe, readinessProbe } = container ?? {};
  const probed = [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet);
  const paths = probed.map((get) => get?.path);
  expect(paths).toEqual(['/health/live', '/health/live', '/health/ready']);
  for (const path of paths) expect(routes).toContain(`'${path}',`);
  expect(probed.map((get) => get?.port)).toEqual(['http', 'http', 'http']);
  expect(startupProbe?.failureThreshold).toBe(720);
});

test('values.schema.json describes every default', () => {
  const schema = JSON.parse(readFileSync(join(chartFolder, 'values.schema.json'), 'utf8'));
  const defaults: Values = parse(readFileSync(join(chartFolder, 'values.yaml'), 'utf8'));
  expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(Object.keys(defaults)));
});

test.each<[Values, boolean]>([
  [{ replicas: 0 }, false],
  [{ replicas: 1 }, true],
  [{ env: { ANNALS_SECRET_KEY: 'in plain' } }, false],
  [{ env: { DATABASE_URL: 'postgres://' } }, false],
  [{ env: { log_level: 'info' } }, false],
  [{ env: { LOG_LEVEL: 'info' } }, true],
  [{ recorder: { port: 65_536 } }, false],
  [{ recorder: { port: 65_535 } }, true],
  [{ metrics: { port: 65_536 } }, false],
  [{ metrics: { port: 65_535 } }, true],
  [{ replica: 2 }, false],
  [{ database: { url: 'postgres://' } }, false],
])('Helm asks values.schema.json: %j is accepted: %s', (values, isAccepted) => {
  if (isAccepted) expect(renderChart(values)).not.toEqual([]);
  else expect(() => renderChart(values)).toThrow("values don't meet the specifications of the schema");
});

function find(kind: string, values: Values = {}): Resource {
  const found = renderChart(values).find((resource) => resource.kind === kind);
  if (found === undefined) throw new Error(`the chart makes no ${kind}`);
  return found;
}

function containersOf(resources: readonly Resource[]): Container[] {
  return resources.filter(({ kind }) => kind === 'Deployment').flatMap(({ spec }) => spec.template.spec.containers);
}

function kindsOf(resources: readonly Resource[]): string[] {
  return resources.map(({ kind }) => kind).sort();
}
