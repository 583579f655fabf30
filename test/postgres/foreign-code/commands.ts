import { randomBytes, randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { fixSearchPath } from '../../../src/postgres/connections/search-path.ts';
import { annals, startAnnals } from '../../support/server/command.ts';
import { foreignCalls, hostileTemplate, lookInPublicFirst, onPlainPath } from '../../support/server/foreign-code.ts';
import { ownPort } from '../../support/server/own-port.ts';
import { eventually } from '../../support/server/patience.ts';
import { startPooler } from '../../support/server/pgbouncer.ts';
import { createSourceDatabase, type SourceServer } from '../../support/server/source-server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

interface Installation {
  /** A superuser's. */
  url: string;
  role: string;
  environment: Record<string, string>;
}

/**
 * A database whose schema `public` is everybody's, and whose schema `service` is Annals' own. The role's path begins
 * with both.
 */
async function hostileInstallation(server: SourceServer, path = 'service,public,pg_catalog'): Promise<Installation> {
  const { url } = await createSourceDatabase(server, hostileTemplate);
  const [role, password] = await createRole(url);
  await lookInPublicFirst(url);
  await onPlainPath(url, (client) => client.query(`alter role ${role} set search_path = ${path}`));
  const database = Object.assign(new URL(url), { username: role, password });
  const environment = { DATABASE_URL: database.href, ANNALS_SECRET_KEY: randomBytes(32).toString('base64') };
  return { url, role, environment };
}

/** A role with a schema `service`, which are dropped when the test ends. */
async function createRole(url: string): Promise<[role: string, password: string]> {
  const [role, password] = [`service_${randomBytes(4).toString('hex')}`, randomBytes(8).toString('hex')];
  await onPlainPath(url, (client) =>
    client.query(`create role ${role} login password '${password}'; create schema service authorization ${role}`),
  );
  onTestFinished(async () => {
    await onPlainPath(url, (client) => client.query(`drop owned by ${role} cascade; drop role ${role}`));
  });
  return [role, password];
}

const scopes = [
  'changelog.changelog_read',
  'changelog.changelog_manage',
  'configuration.configuration_manage',
  'schema.schema_manage',
  'schema.custominstance_manage',
  'ai.agent_manage',
  'ai.agentexecution_manage',
  'usage.usage_read',
  'recorder.change_record',
];

/** A role, and a database with its schema `service`, in which no other role may create. */
async function plainInstallation(server: SourceServer) {
  const { url } = await createSourceDatabase(server);
  const [role, password] = await createRole(url);
  return { url, role, database: Object.assign(new URL(url), { username: role, password }).href };
}

/** Serves, and makes calls that read, count, search, record and write in each way. */
async function useService(environment: Record<string, string>, client: { clientId: string; clientSecret: string }) {
  const recorderPort = await ownPort();
  const ports = { PORT: '0', ANNALS_METRICS_PORT: '0', ANNALS_RECORDER_PORT: String(recorderPort) };
  const service = startAnnals(['serve'], { ...environment, ...ports });
  try {
    const base = (await service.firstLine).match(/http:\S+/)?.[0] ?? '';
    const basic = Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64');
    const granted = await fetch(`${base}/oauth/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    });
    const { access_token: token }: { access_token: string } = JSON.parse(await granted.text());
    const call = async (method: string, path: string, body?: object, origin = base) => {
      const response = await fetch(`${origin}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      expect({ path, status: response.status, text }).toEqual({
        path,
        status: expect.toSatisfy((status) => status < 300),
        text,
      });
      return text;
    };
    const history = '/changelog/acme';
    const queries = [
      '',
      'entity:order type:update',
      'entity:order entityId:3',
      'entity:~^o actor:(Jane, John)',
      'compoundLogicalQuery:((type:create) OR (entity:order entityId:2))',
      'related.entity:shop related.entityId:7',
    ];
    for (const [place, q] of queries.entries()) {
      await call('GET', `${history}/changelogs?q=${encodeURIComponent(q)}`);
      await call('GET', `${history}/histogram?q=${encodeURIComponent(q)}`);
      const field = ['entity', 'type', 'actor'][place % 3];
      await call('GET', `${history}/facets?q=${encodeURIComponent(q)}&field=${field}`);
    }
    await call('GET', `${history}/names?field=entity`);
    await call('GET', `${history}/documents?entity=order&entityId=3`);
    await call('GET', `${history}/recorders`);
    const types = '/schema/acme/custom-entities';
    await call('POST', types, { id: 'NOTE', name: { en: 'Note' } });
    for (let n = 0; n < 3; n++)
      await call('POST', `${types}/NOTE/instances`, { n, name: `note ${n}`, tags: ['a', { b: n }] });
    await call(
      'GET',
      `${types}/NOTE/instances?sort=n:DESC,name&pageSize=2&q=${encodeURIComponent('n:>0 name:~note tags.b:1')}`,
    );
    await call('GET', `${types}/NOTE/instances?q=${encodeURIComponent('name:note*')}`);
    await call('GET', '/configuration/acme/configurations');
    const { jobId }: { jobId: string } = JSON.parse(
      await call('POST', '/ai-service/acme/jobs', { type: 'EXPORT', format: 'CSV' }),
    );
    const job = `/ai-service/acme/jobs/${jobId}`;
    await eventually(() => call('GET', job)).toContain('"success"');
    await call('GET', `${job}/content`);
    await call('GET', '/ai-service/acme/jobs');
    await call('GET', '/usage/acme');
    const change = { op: 'insert', entity: 'order', entityId: 'x', at: new Date().toISOString(), after: { a: 1 } };
    // One is recorded, the other rejected.
    const changes = [{}, { entityId: '' }].map((other) => ({ id: randomUUID(), ...change, ...other }));
    await call('POST', '/recorder/acme/changes', changes, `http://127.0.0.1:${recorderPort}`);
    await eventually(() => call('GET', `${history}/changelogs?q=entity:order%20entityId:x`)).toContain(
      '"totalElements":1',
    );
  } finally {
    service.process.kill('SIGTERM');
    const { stderr } = await service.ended;
    expect(stderr.split('\n').filter((line) => line.includes('"level":"error"'))).toEqual([]);
  }
}

/** The database of Annals. The server has the planted code. */
export function commandTests(server: () => SourceServer): void {
  test("no command calls what others may have made in a schema that comes before PostgreSQL's own", {
    timeout: 300_000,
  }, async () => {
    const { url, environment } = await hostileInstallation(server());
    const folder = temporaryFolder();
    const run = async (args: string[], code = 0) => {
      const outcome = await annals(args, environment);
      expect({ args, ...outcome }).toEqual({ ...outcome, args, code });
      return outcome.stdout;
    };
    await run(['migrate']);
    await run(['tenant', 'create', 'acme']);
    const made = await run(['client', 'create', '--tenant', 'acme', '--scope', scopes.join(' ')]);
    const { clientId, clientSecret }: { clientId: string; clientSecret: string } = JSON.parse(made);
    await run(['client', 'list', '--tenant', 'acme']);
    const file = join(folder, 'changes.ndjson');
    const line = { op: 'update', entity: 'order', actor: 'Jane', related: [{ entity: 'shop', entityId: '7' }] };
    const lines = Array.from({ length: 100 }, (_, n) => ({
      ...line,
      entityId: String(n % 9),
      at: new Date(Date.now() - n * 60_000).toISOString(),
      before: { n },
      after: { n: n + 1 },
    }));
    await writeFile(file, lines.map((each) => JSON.stringify(each)).join('\n'));
    await run(['import', '--tenant', 'acme', file]);
    await run(['tenant', 'list']);
    await run(['index', 'create', '--sort', 'name']);
    await run(['index', 'list']);
    await run(['console', 'link', '--tenant', 'acme', '--scope', 'changelog.changelog_read']);
    await useService(environment, { clientId, clientSecret });
    await run(['rejected', 'list', '--content']);
    await run(['rejected', 'retry'], 1);
    await run(['rejected', 'drop', '--tenant', 'acme', '--all']);
    await run(['retention', '--tenant', 'acme', '--keep-days', '30']);
    const backup = join(folder, 'backup.tar.zst');
    await run(['backup', backup]);
    const empty = await hostileInstallation(server());
    const restored = await annals(['restore', backup], {
      ...empty.environment,
      ANNALS_SECRET_KEY: environment.ANNALS_SECRET_KEY ?? '',
    });
    expect(restored).toMatchObject({ code: 0 });
    await run(['index', 'drop', '--sort', 'name']);
    await run(['client', 'revoke', clientId]);
    await run(['tenant', 'delete', 'acme', '--yes']);
    expect(await foreignCalls(url)).toEqual([]);
    expect(await foreignCalls(empty.url)).toEqual([]);
  });

  test('where others may create in its schema, or did, the start says so in one line', async () => {
    const { url, role, database } = await plainInstallation(server());
    const as = (sql: string) => onPlainPath(url, (client) => client.query(sql));
    const warnings = async () => {
      const lines: string[] = [];
      expect(await fixSearchPath(database, (line) => lines.push(line))).toContain('search_path');
      return lines;
    };
    await as(`alter role ${role} set search_path = service`);
    expect(await warnings()).toEqual([]);
    await as('grant create on schema service to public');
    expect(await warnings()).toEqual([expect.stringContaining('revoke create on schema service from public')]);
    await as(`revoke create on schema service from public; create role ${role}_other; grant ${role} to ${role}_other;
    grant create, usage on schema service to ${role}_other; set role ${role}_other;
    create function service.count(x text) returns text return x; reset role`);
    expect(await warnings()).toEqual([]);
    await as(`revoke ${role} from ${role}_other; revoke create on schema service from ${role}_other`);
    expect(await warnings()).toEqual([expect.stringContaining(`${role}_other`)]);
    await as(`drop owned by ${role}_other; drop role ${role}_other`);
  });

  test('a path that a pooler leaves as the role has it is used only where no other role may create in it', async () => {
    const { url, role, database } = await plainInstallation(server());
    const as = (sql: string) => onPlainPath(url, (client) => client.query(sql));
    const path = async (value: string) => {
      await as(`alter role ${role} set search_path = ${value}`);
      // A new pooler opens new connections.
      const pooled = await startPooler(database);
      const outcome = await fixSearchPath(pooled, () => {}).catch((error: Error) => error.message);
      return outcome === pooled ? 'used' : outcome;
    };
    const fixed = `alter role current_user in database NAME set search_path = "service", pg_temp`;
    expect(await path('service, "$user", public')).toBe('used');
    await as('grant create on schema public to public');
    expect(await path('service, "$user", public')).toContain(fixed);
    expect(await path('service, pg_temp')).toBe('used');
    await as(
      `revoke create on schema public from public; grant create on database ${new URL(url).pathname.slice(1)} to public`,
    );
    expect(await path('service, "$user", public')).toContain(`the schema ${role}, in which public may create`);
  });
}
