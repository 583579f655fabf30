import { randomBytes } from 'node:crypto';
import { expect, inject, onTestFinished, test } from 'vitest';
import { readNews } from '../../../src/history/feed/follower.ts';
import { givePositions } from '../../../src/recording/positions.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';

const tenant = 'acme';

// A round that completes a block of 16 or 256 rewrites the rows before it. Whose newest row began the block saw no news
// then.
test.each([[[1, 30]], [[16, 16, 16]], [[17, 15, 1, 14, 2]], [[1, 255, 1, 255]], [[3, 4, 5, 6, 7, 8, 250, 1]]])(
  'the newest position is news after each of the rounds that give %j positions',
  async (rounds) => {
    const now = Date.UTC(2026, 8, 15);
    const history = await openTestHistory(tenant, () => now);
    onTestFinished(() => history.close());
    const { db } = history.database;
    const record = createRecorder(db, tenant, () => now);
    let last = 0;
    for (const size of rounds) {
      await record(Array.from({ length: size }, () => ({ ...changeOf({ at: now }), identity: randomBytes(16) })));
      await givePositions(db, tenant);
      last += size;
      for (const isDistributed of inject('cluster') === undefined ? [false, true] : [true]) {
        expect(await readNews(db, [tenant, 'nobody'], isDistributed)).toContainEqual({
          tenant,
          newest: last,
          isDue: false,
        });
      }
    }
  },
);
