import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { buildHistoryIndexes } from '../../../src/history/upkeep/statistics.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../../src/postgres/migrate/migrate.ts';
import { createValueIndex } from '../../../src/tenants/custom-entities/value-index.ts';
import { clusterOfEnvironment, createClusterTemplate, onAllNodes, type TestCluster } from './cluster.ts';
import { copyDataFolder, hashOnce, initialiseDataFolder, removeDataFolder } from './data-folder.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    databaseUrl: string;
    /** The data folder that servers of tests are copies of; no server runs on it. */
    initialisedFolder: string;
    /** Null: the embedded database. */
    cluster: TestCluster | null;
  }
}

/** The database that every test database is cloned from; it takes no connections once it is made. */
export const templateName = 'annals_template';
/** The same as the migrations leave it, without the indexes that a service makes after its start. */
export const migratedTemplateName = 'annals_migrated';

/**
 * One PostgreSQL for the whole run, with all migrations applied to a template; stopped and removed at the end. With
 * CITUS_DATABASE_URL and CITUS_WORKERS it is that cluster instead, and the template is distributed over its workers.
 * With ANNALS_TEST_DATABASE_URL it is that server, of any version that Annals supports; its role may create databases.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const initialised = await initialiseDataFolder();
  project.provide('initialisedFolder', initialised);
  project.provide('oldestFolder', null);
  try {
    const stop = await openServer(project, initialised);
    return async () => {
      await stop();
      await removeDataFolder(initialised);
    };
  } catch (error) {
    await removeDataFolder(initialised);
    throw error;
  }
}

async function openServer(project: TestProject, initialised: string): Promise<() => Promise<void>> {
  const cluster = clusterOfEnvironment(process.env);
  project.provide('cluster', cluster ?? null);
  if (cluster !== undefined) {
    await createClusterTemplate(cluster, templateName);
    project.provide('databaseUrl', cluster.url);
    return async () => onAllNodes(cluster, `drop database if exists ${templateName} with (force)`);
  }
  const ownUrl = process.env.ANNALS_TEST_DATABASE_URL;
  if (ownUrl !== undefined) {
    await dropTemplate(ownUrl);
    await makeTemplates(ownUrl);
    project.provide('databaseUrl', ownUrl);
    return () => dropTemplate(ownUrl);
  }
  const dataDir = await copyDataFolder(initialised);
  const database = await openEmbeddedDatabase({ dataDir, log: console.error, durability: 'none' });
  const stop = async () => {
    await database.release();
    await removeDataFolder(dataDir);
  };
  try {
    await hashOnce(database.url);
    await makeTemplates(database.url);
  } catch (error) {
    await stop();
    throw error;
  }
  project.provide('databaseUrl', database.url);
  return stop;
}

async function dropTemplate(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  for (const name of [templateName, migratedTemplateName])
    await client.query(`drop database if exists ${name} with (force)`);
  await client.end();
}

export async function makeTemplates(url: string): Promise<void> {
  await makeDatabase(url, migratedTemplateName, 'template1', (pool) => migrate(pool));
  // Some hundred services of a run then need not make these indexes.
  await makeDatabase(url, templateName, migratedTemplateName, async (pool) => {
    const db = createDatabase(pool);
    await buildHistoryIndexes(db);
    await createValueIndex(db);
  });
}

async function makeDatabase(
  url: string,
  name: string,
  from: string,
  fill: (pool: pg.Pool) => Promise<unknown>,
): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(`create database ${name} template ${from}`);
  await client.end();
  const made = Object.assign(new URL(url), { pathname: name });
  const pool = createPool(made.href);
  try {
    await fill(pool);
  } finally {
    await pool.end();
  }
  await keepCatalog(made.href);
}

/**
 * The first connection to a database reads its catalog and writes what it read to a file, which the clones have then.
 */
async function keepCatalog(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.end();
}
