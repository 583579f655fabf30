import { expect, onTestFinished, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { lockTables } from '../support/server/locked-tables.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestServer } from '../support/server/server.ts';

const server = closeAfterAll(await startTestServer());
const token = await server.token('acme', { scope: 'changelog.changelog_read' });

const path = '/changelog/acme/changelogs';

test('a client that hangs up ends its query, leaves no connection behind and is no error of the service', async () => {
  expect((await server.call(path, { token })).status).toBe(200);
  const locked = await lockTables(server.database, ['change_entry', 'change_tally', 'change_delta']);
  onTestFinished(locked.release);
  // Those of requests: upkeep waits for the tables, too.
  const [shared] = server.context.pool.pools;
  const inUse = () => (shared === undefined ? undefined : shared.totalCount - shared.idleCount);

  const hungUp = new AbortController();
  const asked = Array.from({ length: 12 }, () =>
    server.call(path, { token, signal: hungUp.signal }).catch((error: unknown) => error),
  );
  await eventually(inUse).toBeGreaterThan(3);
  hungUp.abort();
  for (const outcome of await Promise.all(asked)) expect(outcome).toMatchObject({ name: 'AbortError' });
  await eventually(inUse).toBe(0);

  await locked.release();
  expect((await server.call(path, { token })).status).toBe(200);
  const levels = server.logLines.map((line): string => JSON.parse(line).level);
  expect(new Set(levels)).toEqual(new Set(['info']));
});
