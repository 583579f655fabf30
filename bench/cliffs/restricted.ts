import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { benchNow, openBenchDatabase } from '../history/data.ts';
import { type Cost, quantile } from '../history/processor-time.ts';
import { type Ask, startService } from './service.ts';

// What a credential's fixed query costs: the same questions by a client that has it, and joined by hand by one that sees everything.
const { values: settings } = parseArgs({
  options: {
    entries: { type: 'string', default: '3750000' },
    /** How many questions of a class count, for each read. */
    variants: { type: 'string', default: '15' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
  },
});

const tenant = 'big';
const size = 20;
const minute = 60_000;
const hot = 'related:elemMatch(entity:group entityId:hot)';
const classes = [
  { fixed: 'entity:order', own: '' },
  { fixed: 'entity:order', own: 'actor:Jane*' },
  { fixed: hot, own: 'type:update' },
  { fixed: `compoundLogicalQuery:((entity:order type:create) OR (${hot}))`, own: '' },
  { fixed: 'entity:(order, customer)', own: 'actor:~^J' },
];
const reads = ['first page', 'deep page', 'histogram', 'facets of types'] as const;

const embedded = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir: settings.data, log: (line: string) => process.stderr.write(`${line}\n`) });
try {
  const source = await openBenchDatabase(embedded.url, Number(settings.entries));
  const { rows } = await source.query('select current_database() as name');
  await source.end();
  const url = new URL(embedded.url);
  url.pathname = rows[0].name;
  const pool = createPool(url.href, { maximum: 2 });
  const service = await startService(url.href, { pool, tenant });
  try {
    process.stdout.write(
      '| fixed query | own query | read | matches | by hand, ms | fixed, ms | fixed / by hand |\n|---|---|---|---:|---:|---:|---:|\n',
    );
    for (const { fixed, own } of classes) {
      const restricted = await service.askWith(fixed);
      for (const read of reads) await measure({ fixed, own, read, restricted, open: service.ask });
    }
  } finally {
    await service.stop();
    await pool.end();
  }
} finally {
  await embedded.release();
}

interface Measured {
  fixed: string;
  own: string;
  read: (typeof reads)[number];
  restricted: Ask;
  open: Ask;
}

async function measure({ fixed, own, read, restricted, open }: Measured): Promise<void> {
  const costs: { hand: Cost[]; fixed: Cost[] } = { hand: [], fixed: [] };
  let total = 0;
  // The first two make the code and the tables warm, and do not count.
  for (let number = -2; number < Number(settings.variants); number++) {
    // Each question is asked once: what the service remembers of one must not help the other.
    const windowed = (variant: number) =>
      `${own} occurredAt:>="${new Date(benchNow - 30 * 86_400_000 - variant * minute).toISOString()}"`.trim();
    const asked = 2 * (number + 3);
    const what = resourceOf(read, total);
    const byHand = () => open(what, `${fixed} ${windowed(asked)}`);
    const byFixed = () => restricted(what, windowed(asked + 1));
    const first = number % 2 === 0 ? await byHand() : undefined;
    const second = await byFixed();
    const answers = { hand: first ?? (await byHand()), fixed: second };
    total = answers.hand.answer.total;
    if (answers.fixed.answer.total < total)
      throw new Error(`${fixed}: ${answers.fixed.answer.total}, by hand ${total}`);
    if (number < 0) continue;
    costs.hand.push(answers.hand.cost);
    costs.fixed.push(answers.fixed.cost);
  }
  const [hand, restrictedCost] = [median(costs.hand), median(costs.fixed)];
  process.stdout.write(
    `| \`${fixed}\` | \`${own}\` | ${read} | ${total.toLocaleString('en')} | ${hand.toFixed(1)} | ${restrictedCost.toFixed(1)} | ${(restrictedCost / hand).toFixed(2)} |\n`,
  );
}

function resourceOf(read: (typeof reads)[number], total: number): string {
  if (read === 'histogram') return 'histogram?buckets=60';
  if (read === 'facets of types') return 'facets?field=type';
  const page = read === 'deep page' ? Math.max(1, Math.ceil(total / size / 2)) : 1;
  return `changelogs?page=${page}&size=${size}`;
}

function median(costs: readonly Cost[]): number {
  return quantile(
    costs.map(({ service, database }) => service + database),
    0.5,
  );
}
