import { expect, test } from 'vitest';
import { hasEarlierRunning, takePlace } from '../../../src/desk/agents/turn-store.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';

const tenant = 'acme';
const sessionId = '00000000-0000-4000-8000-000000000001';

const database = closeAfterAll(await createTestDatabase());
await createTenant(database.db, tenant);

test('a request waits for an earlier one of its session whose process lives, and not for one whose process has died', async () => {
  const take = (requestId: string) =>
    inTransaction(database.db, (transaction) =>
      takePlace(transaction, tenant, { sessionId, requestId, logId: requestId, agentId: 'desk', lease: 60_000 }),
    );
  await take('first');
  const position = await take('second');
  expect(await hasEarlierRunning(database.db, tenant, { sessionId, position })).toBe(true);
  await database.pool.query("update agent_turn set expires_at = now() where request_id = 'first'");
  expect(await hasEarlierRunning(database.db, tenant, { sessionId, position })).toBe(false);
});
