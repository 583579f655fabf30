import { parseArgs } from 'node:util';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { startServer } from './server.ts';

// Bytes that positions take an entry, on disk with indexes and what was not removed yet: deltas as recording leaves them, of one
// change or of a batch, so many of them in a round. The table is vacuumed as often as autovacuum does at so many changes a
// second: each minute, and each 2,000 rows where that is longer. There are two rounds a second.
const { values: settings } = parseArgs({
  options: { entries: { type: 'string', default: '1000000' }, only: { type: 'string' } },
});
const entries = Number(settings.entries);

const server = await startServer();
const pool = createPool(server.url, { maximum: 1 });
try {
  await migrate(pool);
  await pool.query('set synchronous_commit = off');
  const lines: string[] = [];
  for (const { what, tenant, ofDelta, ofRound, spread, rate } of [
    { what: 'one by one, 500 in a round', tenant: 'rounds', ofDelta: 1, ofRound: 500, spread: 0, rate: 2_000 },
    { what: 'one by one, each a round', tenant: 'single', ofDelta: 1, ofRound: 1, spread: 0, rate: 2 },
    { what: 'batches of 2,000', tenant: 'batches', ofDelta: 2_000, ofRound: 10, spread: 0, rate: 2_000 },
    {
      what: 'batches of 2,000, times of a year in any order',
      tenant: 'shuffled',
      ofDelta: 2_000,
      ofRound: 10,
      spread: 31_536_000_000,
      rate: 2_000,
    },
  ]) {
    if (settings.only !== undefined && settings.only !== tenant) continue;
    await pool.query('truncate change_position');
    await pool.query('insert into tenant (tenant) values ($1)', [tenant]);
    let sinceVacuum = 0;
    for (let done = 0; done < entries; done += ofDelta * ofRound) {
      // Concurrent recorders take numbers in another order than that of their times.
      await pool.query(
        `insert into change_delta (tenant, ats, sequences, kinds, actors, recorder, recorded, transaction)
           select $1, array_agg(1790000000000 + n * $6::bigint / 1000 - floor(random() * 5)::bigint - floor(random() * $5)::bigint order by n),
                  array_agg(n * 3 + floor(random() * 8)::bigint order by n), '{}', '{}', 2, 1790000000000 + min(n) * $6::bigint / 1000,
                  pg_current_xact_id()
             from generate_series($2::bigint, $2::bigint + $3::bigint * $4 - 1) n group by n / $3`,
        [tenant, done, ofDelta, ofRound, spread, 1_000_000 / rate],
      );
      await pool.query('select change_position_give($1)', [tenant]);
      await pool.query('delete from change_delta where tenant = $1 and position is not null', [tenant]);
      sinceVacuum += ofDelta * ofRound;
      if (sinceVacuum < Math.max(60 * rate, 2_000)) continue;
      sinceVacuum = 0;
      // Dead deltas are not measured here, and would be looked through.
      await pool.query('vacuum change_position, change_delta');
    }
    const size = async () =>
      (await pool.query("select pg_total_relation_size('change_position') as bytes")).rows[0].bytes;
    const atOnce = await size();
    await pool.query('vacuum full change_position');
    const { rows } = await pool.query(
      'select count(*) as rows, sum(cardinality(fingerprints)) as entries from change_position',
    );
    const compact = await size();
    const of = (bytes: number) => (bytes / rows[0].entries).toFixed(1);
    lines.push(`| ${what} | ${rows[0].entries} | ${rows[0].rows} | ${of(atOnce)} | ${of(compact)} |`);
    process.stderr.write(`${lines.at(-1)}\n`);
  }
  process.stdout.write(
    `| changes | entries | rows | bytes an entry at the end | after VACUUM FULL |\n|---|---:|---:|---:|---:|\n${lines.join('\n')}\n`,
  );
} finally {
  await pool.end();
  await server.stop();
}
