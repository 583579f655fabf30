import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createClient } from '../../src/access/oauth/clients.ts';
import { makeProofKey } from '../../src/history/proof/sealing/make-key.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { runErasureLaw } from '../../test/support/server/erasure-law.ts';
import { startServices } from '../../test/support/server/service-processes.ts';
import { startReceiver } from '../../test/support/vendor/receiver.ts';
import { startServer } from '../positions/server.ts';

// An erasure that is killed with SIGKILL again and again while a service seals, exports and delivers the history, and somebody records.
const { values: settings } = parseArgs({ options: { kills: { type: 'string', default: '20' } } });
const tenant = 'acme';
const scope = 'changelog.changelog_read changelog.subscription_read changelog.subscription_manage';

const server = await startServer();
const receiver = await startReceiver();
const folder = await mkdtemp(join(tmpdir(), 'annals-erasure-'));
const pool = createPool(server.url, { maximum: 4 });
const database = { url: server.url, pool, db: createDatabase(pool) };
await migrate(pool);
await createTenant(database.db, tenant);
const secret = randomBytes(32);
const keyFile = join(folder, 'proof.key');
makeProofKey(keyFile);
const services = await startServices(1, {
  DATABASE_URL: server.url,
  ANNALS_SECRET_KEY: secret.toString('base64'),
  ANNALS_PROOF_KEY_FILE: keyFile,
  ANNALS_DELIVERY_ALLOW: `${tenant}=127.0.0.0/8`,
  LOG_LEVEL: 'fatal',
});
const baseUrl = await services.next();
const { clientId, clientSecret } = await createClient(database.db, { tenant, scope, name: 'reader' });
const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
const answer = await fetch(`${baseUrl}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) });
const { access_token: token } = (await answer.json()) as { access_token: string };
const call = async (path: string, { headers = {}, ...init }: RequestInit = {}) =>
  await fetch(`${baseUrl}${path}`, { ...init, headers: { ...headers, authorization: `Bearer ${token}` } });

const outcome = await runErasureLaw({
  ...{ database, secret, keyFile, tenant, call, receiver },
  kills: Number(settings.kills),
  pauses: { changes: 50, exports: 500 },
});
process.stdout.write(`${JSON.stringify(outcome)}\n`);
await services.end();
await receiver.close();
await pool.end();
await server.stop();
await rm(folder, { recursive: true });
process.exit(outcome.faults.length === 0 ? 0 : 1);
