import { setTimeout as rest } from 'node:timers/promises';
import { beforeEach, expect, test } from 'vitest';
import { createClientStates, type FindClientState } from '../../../src/access/oauth/client-states.ts';
import { createClient, revokeClient } from '../../../src/access/oauth/clients.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { eventually } from '../../support/server/patience.ts';

const scopes = ['ai.agent_read'];
let clientId: string;
let elapsed = 0;
let lookups = 0;
let find: FindClientState;

const database = closeAfterAll(await createTestDatabase());
await createTenant(database.db, 'acme');
database.pool.on('acquire', () => {
  lookups += 1;
});

beforeEach(async () => {
  clientId = (await createClient(database.db, { tenant: 'acme', scope: 'ai.agent_read', name: 'Jane' })).clientId;
  find = createClientStates(database.db, () => elapsed, readRestriction);
  await find('acme', clientId);
  lookups = 0;
});

test('for a second a state is returned synchronously, without a lookup', () => {
  elapsed += 1_000;
  for (let call = 0; call < 1_000; call += 1) {
    expect(find('acme', clientId)).toEqual({ name: 'Jane', revoked: false, scopes, rotations: 0, makers: [] });
  }
  expect(lookups).toBe(0);
});

test('up to 3 seconds calls get the cached state while one lookup is under way for all', async () => {
  await revokeClient(database.db, clientId);
  lookups = 0;
  elapsed += 3_000;
  for (let call = 0; call < 100; call += 1) {
    expect(find('acme', clientId)).toEqual({ name: 'Jane', revoked: false, scopes, rotations: 0, makers: [] });
  }
  expect(lookups).toBeLessThanOrEqual(1);
  await eventually(() => find('acme', clientId)).toEqual({
    name: 'Jane',
    revoked: true,
    scopes,
    rotations: 0,
    makers: [],
  });
  expect(lookups).toBe(1);
});

test('after 3 seconds calls wait for the lookup', async () => {
  await revokeClient(database.db, clientId);
  elapsed += 3_001;
  const answers = [find('acme', clientId), find('acme', clientId)];
  for (const answer of answers) expect(answer).toBeInstanceOf(Promise);
  expect(await Promise.all(answers)).toEqual([
    { name: 'Jane', revoked: true, scopes, rotations: 0, makers: [] },
    { name: 'Jane', revoked: true, scopes, rotations: 0, makers: [] },
  ]);
});

test('a client that is unknown, or belongs to another tenant, is undefined and not an error', async () => {
  expect(await find('acme', 'acme.nobody')).toBeUndefined();
  expect(await find('other', clientId)).toBeUndefined();
  expect(find('acme', clientId)).toEqual({ name: 'Jane', revoked: false, scopes, rotations: 0, makers: [] });
});

test('without the database, a cached state serves until it is 5 seconds old', async () => {
  const away = await createTestDatabase();
  await createTenant(away.db, 'acme');
  const { clientId: known } = await createClient(away.db, { tenant: 'acme', scope: 'ai.agent_read' });
  const findAway = createClientStates(away.db, () => elapsed, readRestriction);
  await findAway('acme', known);
  await away.drop();
  elapsed += 5_000;
  expect(await findAway('acme', known)).toEqual({ name: known, revoked: false, scopes, rotations: 0, makers: [] });
  elapsed += 1;
  await expect(findAway('acme', known)).rejects.toThrow();
  await expect(findAway('acme', 'acme.unseen')).rejects.toThrow();
});

test('calls wait for a slow database where no cached state is recent enough', async () => {
  const unknown = (await createClient(database.db, { tenant: 'acme', scope: 'ai.agent_read' })).clientId;
  elapsed += 6_000;
  const lock = await database.pool.connect();
  await lock.query('begin; lock table oauth_client in access exclusive mode');
  const answers = Promise.all([find('acme', clientId), find('acme', unknown)]);
  await rest(2_000);
  await lock.query('commit');
  lock.release();
  expect(await answers).toEqual([
    { name: 'Jane', revoked: false, scopes, rotations: 0, makers: [] },
    { name: unknown, revoked: false, scopes, rotations: 0, makers: [] },
  ]);
});
