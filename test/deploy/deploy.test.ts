import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { runCommandLine } from '../../src/cli/commands/command-line.ts';
import { readConfig } from '../../src/core/config/config.ts';
import {
  type Container,
  chartFolder,
  defaultValues,
  type Resource,
  renderChart,
  type Values,
} from '../support/chart/render-chart.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const units = readdirSync(join(root, 'deploy/systemd')).map((name) => ({ name, text: read(`deploy/systemd/${name}`) }));
const dockerfile = read('Dockerfile');
const compose = parse(read('compose.yaml'));

/** Variables of other programs, and those that a command reads by itself. */
const otherVariables = [
  'NODE_ENV',
  'XDG_CACHE_HOME',
  'ANNALS_SOURCE_URL',
  'POSTGRES_USER',
  'POSTGRES_DB',
  'POSTGRES_PASSWORD',
];
const secretVariables = /^(DATABASE_URL|SMTP_URL|.*(PASSWORD|TOKEN|SECRET_KEY))$/;

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
  topologySpreadConstraints: [{ maxSkew: 1 }],
};

/** The names that readConfig looks up. */
function knownVariables(): Set<string> {
  const names = new Set(otherVariables);
  const environment: Record<string, string | undefined> = {};
  readConfig(new Proxy(environment, { get: (_target, name) => void names.add(String(name)) }));
  return names;
}

test('every variable that is named anywhere is one of the settings', () => {
  const named = [dockerfile, read('compose.yaml'), read('docs/deploy.md'), read('deploy/helm/annals/values.yaml')]
    .concat(units.map(({ text }) => text))
    .flatMap((text) => text.match(/\b(?:ANNALS|OTEL|SMTP|DATABASE|LOG|POSTGRES|XDG)_[A-Z_]+\b/g) ?? []);
  const rendered = containersOf(renderChart(allValues)).flatMap(({ env }) => env.map(({ name }) => name));
  const all = new Set([...named, ...rendered, ...Object.keys(compose.services.annals.environment)]);
  expect(all).toContain('ANNALS_SECRET_KEY');
  const known = knownVariables();
  expect([...all].filter((name) => !known.has(name))).toEqual([]);
});

test('no secret stands in a file: each is a reference', () => {
  for (const [name, value] of Object.entries<string>({
    ...compose.services.annals.environment,
    ...compose.services.database.environment,
  })) {
    if (secretVariables.test(name)) expect(value, name).toMatch(/^(postgres:\/\/annals:)?\$\{\w+:\?/);
  }
  for (const { env } of containersOf(renderChart(allValues))) {
    const secret = env.filter(({ name }) => secretVariables.test(name));
    expect(secret.length).toBeGreaterThan(2);
    for (const variable of secret) expect(variable, variable.name).toHaveProperty('valueFrom.secretKeyRef.name');
  }
  for (const { name, text } of units)
    expect(text.match(/^Environment=(.*)$/gm), name).toEqual(['Environment=XDG_CACHE_HOME=/var/cache']);
  const files = execFileSync('git', ['ls-files', 'deploy', 'Dockerfile', 'compose.yaml', '.dockerignore'], {
    cwd: root,
    encoding: 'utf8',
  });
  for (const file of files.trim().split('\n')) {
    expect(read(file), file).not.toMatch(/[A-Za-z0-9+/]{43}=|BEGIN [A-Z ]*PRIVATE KEY|:\/\/\w+:\w+@/);
  }
});

test('the chart renders without and with everything, and names are those of the release', () => {
  expect(kindsOf(renderChart())).toEqual(['Deployment', 'PodDisruptionBudget', 'Service']);
  expect(kindsOf(renderChart(allValues))).toEqual(['Deployment', 'Ingress', 'PodDisruptionBudget', 'Service']);
  expect(kindsOf(renderChart({ podDisruptionBudget: { enabled: false } }))).toEqual(['Deployment', 'Service']);
  for (const resource of renderChart(allValues)) expect(resource).toHaveProperty('metadata.name', 'history');
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

test('the container runs as nobody in particular, on a file system that it cannot write', () => {
  const pod = find('Deployment').spec.template.spec;
  expect(pod).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsNonRoot: true } });
  expect(pod.containers[0]?.securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  expect(dockerfile).toContain(`USER ${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}\n`);
  expect(compose.services.annals).toMatchObject({ read_only: true, tmpfs: ['/tmp'], cap_drop: ['ALL'] });
  for (const { name, text } of units) {
    expect(text, name).toMatch(/^User=annals$/m);
    expect(text, name).toMatch(/^ProtectSystem=strict$/m);
    expect(text, name).toMatch(/^NoNewPrivileges=true$/m);
  }
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
  expect(dockerfile).toContain(`PORT=${port} `);
  expect(dockerfile).toContain(`EXPOSE ${port}\n`);
  expect(compose.services.annals.ports).toEqual([`127.0.0.1:8080:${port}`]);

  const routes = read('src/http/health/health-routes.ts');
  const { startupProbe, livenessProbe, readinessProbe } = container ?? {};
  const probed = [startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet);
  const paths = [...probed.map((get) => get?.path), /\/health\/\w+/.exec(dockerfile)?.[0]];
  expect(paths).toEqual(['/health/live', '/health/live', '/health/ready', '/health/ready']);
  for (const path of paths) expect(routes).toContain(`'${path}',`);
  expect(probed.map((get) => get?.port)).toEqual(['http', 'http', 'http']);
  expect(startupProbe?.failureThreshold).toBe(720);
});

test('values.schema.json takes the defaults and everything, and refuses what would not work', () => {
  const schema = JSON.parse(readFileSync(join(chartFolder, 'values.schema.json'), 'utf8'));
  const validate = new Ajv({ strict: true, strictTypes: false }).compile(schema);
  const accepts = (values: Values) => validate({ ...defaultValues(), ...values });
  expect(validate(defaultValues()), JSON.stringify(validate.errors)).toBe(true);
  expect(accepts(allValues), JSON.stringify(validate.errors)).toBe(true);
  // Every default is described.
  expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(Object.keys(defaultValues())));
  expect(accepts({ replicas: 0 })).toBe(false);
  expect(accepts({ replicas: 1 })).toBe(true);
  expect(accepts({ env: { ANNALS_SECRET_KEY: 'in plain' } })).toBe(false);
  expect(accepts({ env: { DATABASE_URL: 'postgres://' } })).toBe(false);
  expect(accepts({ env: { log_level: 'info' } })).toBe(false);
  expect(accepts({ recorder: { port: 65_536 } })).toBe(false);
  expect(accepts({ recorder: { port: 65_535 } })).toBe(true);
  expect(accepts({ metrics: { port: 65_536 } })).toBe(false);
  expect(accepts({ metrics: { port: 65_535 } })).toBe(true);
  expect(accepts({ replica: 2 })).toBe(false);
  expect(accepts({ database: { url: 'postgres://' } })).toBe(false);
});

test('what the Dockerfile copies is in the repository and not ignored', () => {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  }).split('\n');
  const ignored = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !/^[#!*]/.test(line));
  const copied = [...dockerfile.matchAll(/^COPY ((?!--from)[^\n]+)$/gm)].flatMap(([, operands = '']) =>
    operands.split(' ').slice(0, -1),
  );
  expect(copied.length).toBeGreaterThan(10);
  for (const source of copied) {
    expect(existsSync(join(root, source)), source).toBe(true);
    expect(
      files.some((file) => file === source || file.startsWith(source)),
      source,
    ).toBe(true);
    expect(
      ignored.some((folder) => `${source}/`.startsWith(`${folder}/`)),
      source,
    ).toBe(false);
  }
  // Nothing of the package is missing that the service reads.
  const { files: packed }: { files: string[] } = JSON.parse(read('package.json'));
  for (const folder of packed.filter((name) => !/^(!|examples|clients)/.test(name)))
    expect(dockerfile, folder).toMatch(new RegExp(`\\b${folder}/? `));
});

test('the units run commands that are there, with options that are there', async () => {
  const help = async (command: string) => {
    const lines: string[] = [];
    const io = { environment: {}, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr };
    const code = await runCommandLine([command, '--help'], {
      ...io,
      answer: (line) => void lines.push(line),
      tell: (line) => void lines.push(line),
      stop: new AbortController().signal,
    });
    expect(code).toBe(0);
    return lines.join('\n');
  };
  expect(units.map(({ name }) => name)).toEqual([
    'annals-capture.service',
    'annals-recorder.service',
    'annals-relay.service',
    'annals.service',
  ]);
  for (const { name, text } of units) {
    const [, command = '', options = ''] = /^ExecStart=\/usr\/local\/bin\/annals (\w+)(.*)$/m.exec(text) ?? [];
    const told = await help(command);
    expect(told, name).toContain(`Usage: annals ${command}`);
    for (const option of options.match(/--\w+/g) ?? []) expect(told, name).toContain(option);
  }
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
