import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { applicationArbitrary } from '../support/oracle/application-arbitrary.ts';
import { checkLaw } from '../support/oracle/law.ts';
import { trials } from '../support/oracle/trials.ts';
import { prepareObservedServer, runObservedLaw } from '../support/server/observed-law.ts';
import { startSourceServer } from '../support/server/source-server.ts';
import { tenant, useHistory } from './history.ts';

const openHistory = useHistory();

const server = closeAfterAll(await startSourceServer());
await prepareObservedServer(server);
test.each([
  ['triggers', 3],
  ['capture', 2],
] as const)(
  'an application observed by %s runs as it does alone, and nothing masked leaves its database',
  async (way, runs) => {
    const { db: history, pool } = openHistory();
    await checkLaw(applicationArbitrary(18), { runs }, async (application) => {
      await pool.query('delete from capture_position');
      expect(await runObservedLaw({ url: server.url, history, tenant }, application, way)).toEqual([]);
    });
  },
  60_000 * trials(1),
);
