import { existsSync } from 'node:fs';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { clientAliases } from './console/client-aliases.ts';
import { findChromium } from './console/test/support/find-chromium.ts';
import { findHelm } from './test/support/chart/helm-program.ts';
import { trials } from './test/support/oracle/trials.ts';
import { databaseTests, pureTests, testFiles } from './test/support/pure-tests.ts';
import { findNginx } from './test/support/server/nginx-program.ts';
import { findPgbouncer } from './test/support/server/pgbouncer-program.ts';
import { findPostgresPrograms } from './test/support/server/postgres-programs.ts';
import { fetchedPackages, findPython } from './test/support/server/python-program.ts';

// npm installs no pgbouncer. Where it is missing these do not run, and the run says so. CI installs it.
const poolerTests = ['test/postgres/connections/pooler.test.ts', 'test/client/attribution/pooler.test.ts'];
const leavesOutPooler = process.env.CI === undefined && findPgbouncer() === undefined;
if (leavesOutPooler) console.warn(`pgbouncer is not installed, so ${poolerTests.join(', ')} do not run.`);

const proxyTest = 'test/history/feed/behind-nginx.test.ts';
const leavesOutProxy = process.env.CI === undefined && findNginx() === undefined;
if (leavesOutProxy) console.warn(`nginx is not installed, so ${proxyTest} does not run.`);

const chartTest = 'test/deploy/chart.test.ts';
const leavesOutChart = process.env.CI === undefined && findHelm() === undefined;
if (leavesOutChart) console.warn(`Helm is not installed, so ${chartTest} does not run.`);

const pythonTest = 'test/client/python.test.ts';
const leavesOutPython = process.env.CI === undefined && findPython() === undefined;
if (leavesOutPython)
  console.warn(`Python 3.11 with httpx, pytest and psycopg is not installed, so ${pythonTest} does not run.`);

const djangoTest = 'test/examples/django-shop.test.ts';
const leavesOutDjango =
  process.env.CI === undefined && (leavesOutPython || fetchedPackages('frameworks') === undefined);
if (leavesOutDjango) console.warn(`clients/python/fetch-packages.sh has not run, so ${djangoTest} does not run.`);

const prismaTest = 'test/client/attribution/prisma/prisma.test.ts';
const leavesOutPrisma =
  process.env.CI === undefined && !existsSync('test/client/attribution/prisma/generated/client.ts');
if (leavesOutPrisma)
  console.warn(
    `Prisma is not installed (npm ci --prefix test/client/attribution/prisma), so ${prismaTest} does not run.`,
  );

// The embedded PostgreSQL brings no pg_dump.
const dumpTest = 'test/postgres/backup/pg-dump.test.ts';
const leavesOutDump = process.env.CI === undefined && findPostgresPrograms() === undefined;
if (leavesOutDump) console.warn(`PostgreSQL's own programs are not installed, so ${dumpTest} does not run.`);

// The tests of the console and of the viewer need a browser. npm installs one that runs on Linux alone; CHROMIUM_PATH names another.
const browserTests = [
  'console/test/console.test.ts',
  'console/test/long-values.test.ts',
  'clients/viewer/test/viewer.test.ts',
];
const leavesOutBrowser = process.env.CI === undefined && findChromium() === undefined;
if (leavesOutBrowser) console.warn(`No Chromium can run here, so these do not run: ${browserTests.join(', ')}.`);

// A cluster is no part of the project. Where its address is given, all tests run on it; elsewhere those of clusters do not.
const clusterTests = 'test/postgres/cluster/citus*.test.ts';
const leavesOutCluster = process.env.CITUS_DATABASE_URL === undefined;
if (leavesOutCluster)
  console.warn(`CITUS_DATABASE_URL and CITUS_WORKERS name no cluster, so ${clusterTests} do not run.`);

// Vitest begins with the largest files. These are small and take long: as the last ones they would run alone.
const longFiles = [
  'console/test/console.test.ts',
  'console/test/long-values.test.ts',
  'clients/viewer/test/viewer.test.ts',
  'test/postgres/embedded/embedded-database.test.ts',
  'test/postgres/embedded/embedded-members.test.ts',
  'test/postgres/foreign-code.test.ts',
  'test/cli/package.test.ts',
  'test/demo/demo-command.test.ts',
  'test/client/package.test.ts',
  'test/sources/recorder/kill.test.ts',
  'test/sources/observed-law.test.ts',
  'test/delivery/batches/splunk-batches.test.ts',
];

class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => longFiles.some((file) => moduleId.endsWith(`/${file}`));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

const built = ['test/support/server/bundle-of-run.ts', 'test/support/server/pages-of-run.ts'];

/** What runs in each mode, and what is started for it. */
const modes: Readonly<Record<string, { include: string[]; globalSetup: string[] }>> = {
  /** The tests that need no server, process or browser. */
  quick: { include: pureTests(import.meta.dirname), globalSetup: [] },
  /** Those of databases, on the oldest PostgreSQL. */
  oldest: {
    include: databaseTests(import.meta.dirname),
    globalSetup: [...built, 'test/support/server/oldest-server.ts'],
  },
};
const whole = { include: testFiles, globalSetup: [...built, 'test/support/server/database-server.ts'] };

export default defineConfig(({ mode }) => ({
  resolve: { alias: clientAliases },
  test: {
    include: (modes[mode] ?? whole).include,
    exclude: [
      ...configDefaults.exclude,
      ...(leavesOutPooler ? poolerTests : []),
      ...(leavesOutProxy ? [proxyTest] : []),
      ...(leavesOutChart ? [chartTest] : []),
      ...(leavesOutPrisma ? [prismaTest] : []),
      ...(leavesOutPython ? [pythonTest] : []),
      ...(leavesOutDjango ? [djangoTest] : []),
      ...(leavesOutDump ? [dumpTest] : []),
      ...(leavesOutCluster ? [clusterTests] : []),
      ...(leavesOutBrowser ? browserTests : []),
    ],
    globalSetup: [
      'test/support/oracle/seed-of-run.ts',
      'test/support/server/memory-folder.ts',
      ...(modes[mode] ?? whole).globalSetup,
    ],
    pool: 'forks',
    // Tests of processes wait much: with two workers two cores stand still for a quarter of the run.
    maxWorkers: 4,
    // Megabytes. A worker loads much and holds it for many files: V8's small beginnings have it collect garbage over and over, for some 4 %
    // of the processor time. They are for the worker alone: its threads have the limits of the product.
    execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=32', '--initial-heap-size=512'],
    setupFiles: ['test/support/server/heap-of-threads.ts'],
    // The files of a worker share their modules: to load the service anew for each file took more than a third of the run.
    isolate: false,
    sequence: { sequencer: LongFilesFirst },
    // For what hangs. A test that starts processes takes a minute on a machine that is busy with other work, and more trials more.
    testTimeout: trials(180_000),
    hookTimeout: 180_000,
    expect: { poll: { timeout: 30_000 } },
    // CI runs on shared machines that may stand still for seconds. The run shows each test that it had to repeat.
    retry: process.env.CI === undefined ? 0 : 1,
  },
}));
