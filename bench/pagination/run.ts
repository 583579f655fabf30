import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createContext } from '../../src/context/context.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { measurePages } from './pages.ts';
import { measureWrites } from './writes.ts';

/**
 * The cost of pages and of writes, in one run on a database of its own.
 * Usage: node bench/pagination/run.ts [instances, 1000000 unless told]
 */
const instances = Number(process.argv[2] ?? 1_000_000);
const dataDir = await mkdtemp(join(tmpdir(), 'annals-bench-'));
const database = await openEmbeddedDatabase({ dataDir, log: console.error });
try {
  const pool = createPool(database.url);
  await migrate(pool);
  await pool.end();
  const context = await createContext({
    config: readConfig({ LOG_LEVEL: 'silent' }),
    databaseUrl: database.url,
    secretKeys: [randomBytes(32)],
  });
  try {
    await createTenant(context.db, 'bench');
    const report = [
      `# ${instances.toLocaleString('en')} instances, ${new Date().toISOString().slice(0, 10)}, Node ${process.version}`,
      await measurePages(context, instances),
      await measureWrites(context),
    ].join('\n\n');
    console.log(report);
    await writeFile(new URL('last-run.md', import.meta.url), `${report}\n`);
  } finally {
    await context.close();
  }
} finally {
  await database.release();
  await rm(dataDir, { recursive: true, force: true });
}
