import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase, type Database } from '../../../src/postgres/database.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { cloneOnCluster, dropOnCluster } from './cluster.ts';

export interface TestDatabase {
  url: string;
  pool: pg.Pool;
  db: Database;
  /** Ends the pool and drops the database; to be called in afterAll. */
  drop(): Promise<void>;
}

const templateName = 'annals_template';
const migratedTemplateName = 'annals_migrated';
/**
 * The files of the run's own server are in memory: to copy them takes half the time of writing all pages to the log,
 * and to drop them too.
 */
const strategy = process.env.ANNALS_TEST_DATABASE_URL === undefined ? ' strategy file_copy' : '';

/** A fresh database that a service has used already: a clone of the template, made in some 50 ms. */
export async function createTestDatabase(): Promise<TestDatabase> {
  return await openTestDatabase(templateName);
}

/** As the migrations leave it, without the indexes that a service makes after its start. */
export async function createMigratedTestDatabase(): Promise<TestDatabase> {
  return await openTestDatabase(inject('cluster') === null ? migratedTemplateName : templateName);
}

/** A fresh database without anything in it, not even the migrations. */
export async function createEmptyTestDatabase(): Promise<TestDatabase> {
  return await openTestDatabase('template1');
}

/**
 * As createMigratedTestDatabase, and never distributed: for tests about the schema, the backup and the transaction ids
 * of one server. On a cluster it is a database that the coordinator alone has.
 */
export async function createSingleTestDatabase(): Promise<TestDatabase> {
  if (inject('cluster') === null) return await createMigratedTestDatabase();
  const database = await createEmptyTestDatabase();
  await migrate(database.pool);
  return database;
}

/** The same for one test alone: it is dropped when that test ends. */
export async function createTestDatabaseForThisTest(create = createTestDatabase): Promise<TestDatabase> {
  const database = await create();
  onTestFinished(database.drop);
  return database;
}

async function openTestDatabase(template: string): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  const cluster = inject('cluster');
  if (cluster === null) await administer(`create database ${name} template ${template}${strategy}`);
  else await cloneOnCluster(cluster, name, template);
  const url = new URL(inject('databaseUrl'));
  url.pathname = name;
  const pool = createPool(url.href, { applicationName: 'annals test' });
  return {
    url: url.href,
    pool,
    db: createDatabase(pool),
    async drop() {
      if (!pool.ended) await pool.end();
      if (cluster === null) await administer(`drop database if exists ${name} with (force)`);
      else await dropOnCluster(cluster, name);
    },
  };
}

/** Its connections stay for the databases that follow: to sign in twice takes as long as to make a database. */
let administrator: pg.Pool | undefined;

async function administer(statement: string): Promise<void> {
  administrator ??= openAdministrator();
  await administrator.query(statement);
}

function openAdministrator(): pg.Pool {
  const pool = new pg.Pool({
    connectionString: inject('databaseUrl'),
    max: 2,
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: true,
  });
  // The server ends with the run, maybe before this process.
  pool.on('error', () => {});
  return pool;
}
