import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { matches } from '../../support/oracle/query-evaluator.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';
import { pathsOf } from '../../support/server/path-history.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** So many entries of a window are looked at before a search: see change_read_paths. */
const looked = 100;
const sides = '{"before":1,"after":2}';

/** The newest first. Both entity types have each path, so a path has two numbers. */
const changes = Array.from({ length: looked + 200 }, (_none, place) =>
  changeOf({
    at: now - place * 1_000,
    entity: place % 2 === 0 ? 'order' : 'site',
    entityId: `document ${place}`,
    actor: `actor ${place % 5}`,
    paths: pathsOf({
      name: sides,
      ...(place % 3 === 0 && { frequent: sides }),
      ...(place % 60 < 2 && { middle: sides }),
      // none of the newest, and two of each type
      ...(place >= looked + 100 && place < looked + 104 && { rare: sides }),
    }),
  }),
).map((change) => ({ ...change, identity: randomBytes(16) }));

const history = closeAfterAll(await openTestHistory(tenant, () => now));
await createRecorder(history.database.db, tenant, () => now)(changes);

/** A window with the newest so many entries. */
const newest = (entries: number) => `occurredAt:>"${new Date(now - entries * 1_000).toISOString()}"`;

test.each(
  ['path:frequent', 'path:middle', 'path:rare', 'path:middle actor:actor 1', 'entity:site path:frequent'].flatMap((q) =>
    [q, `${q} ${newest(looked - 1)}`, `${q} ${newest(looked)}`, `${q} ${newest(looked + 1)}`].map((query) => [query]),
  ),
)('%s has its total and each of its pages', async (q) => {
  const query = parseQuery(q, changelogDialect);
  const wanted = changes.filter((change) => matches(query, change, now)).map(({ entityId }) => entityId);
  for (const size of [4, 40]) {
    for (let skip = 0; skip <= wanted.length; skip += size) {
      const page = await history.findPage(tenant, query, { skip, size });
      expect({ skip, total: page.total, ids: page.entries.map(({ entityId }) => entityId) }).toEqual({
        skip,
        total: wanted.length,
        ids: wanted.slice(skip, skip + size),
      });
    }
  }
});
