import { expect, test } from 'vitest';
import {
  claimRequest,
  extendRequest,
  finishRequest,
  type RequestName,
  readRequest,
} from '../../../src/desk/completions/idempotent-request-store.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';

const database = closeAfterAll(await createTestDatabase());
await createTenant(database.db, 'acme');

test('an attempt that counted as dead neither ends nor extends the attempt after it', async () => {
  const { db, pool } = database;
  const name: RequestName = { tenant: 'acme', clientId: 'acme.client', keyHash: Buffer.alloc(32, 1) };
  const fingerprint = Buffer.alloc(32, 2);
  const dead = await claimRequest(db, name, fingerprint, 0);
  const alive = await claimRequest(db, name, fingerprint, 60_000);
  if (dead === undefined || alive === undefined) throw new Error('an attempt was not begun');

  await finishRequest(db, name, dead, { state: 'succeeded', outcome: Buffer.from('late'), memory: 60_000 });
  expect(await readRequest(db, name)).toMatchObject({ attempt: alive, state: 'running', outcome: null });
  await pool.query('update completion_request set expires_at = now()');
  await extendRequest(db, name, dead, 60_000);
  expect(await readRequest(db, name)).toMatchObject({ attempt: alive, expired: true });
});
