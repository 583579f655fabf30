import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { codeOf } from '../../core/errors.ts';
import { writeOnce } from '../write-once.ts';
import { giveTo, type Home } from './home.ts';

/** The role that owns the cluster, used only to create the role of the service. */
export const ownerRole = 'postgres';
const serviceRole = 'annals';
const serviceDatabase = 'annals';

/** The file with the password of both roles, readable only by its owner. */
export function passwordFile(home: Home): string {
  return join(home.folder, 'password');
}

/** The cluster's password, which the first call creates. */
export async function clusterPassword(home: Home): Promise<string> {
  const password = await writeOnce(passwordFile(home), randomBytes(24).toString('hex'));
  await giveTo(home.user, passwordFile(home));
  return password;
}

/** The URL that the service connects with. */
export function serviceUrl(port: number, password: string): string {
  return `postgres://${serviceRole}:${password}@127.0.0.1:${port}/${serviceDatabase}`;
}

/**
 * Tries to log in at a port. `ready` proves that the server is ours: in SCRAM both sides prove that they know the
 * password. `not-yet`: the server starts or recovers. `refused`: no server. `stranger`: another server.
 */
export async function greet(port: number, password: string): Promise<'ready' | 'not-yet' | 'refused' | 'stranger'> {
  try {
    await asOwner(port, password, async () => {});
    return 'ready';
  } catch (error) {
    const code = codeOf(error);
    if (code === '57P03' || code === '53300') return 'not-yet';
    return code === 'ECONNREFUSED' || code === 'ECONNRESET' ? 'refused' : 'stranger';
  }
}

/** Creates the service's role and database if they are missing, also after a crash in between. */
export async function setUpService(port: number, password: string): Promise<void> {
  await asOwner(port, password, async (client) => {
    const found = await client.query('select 1 from pg_database where datname = $1', [serviceDatabase]);
    if (found.rowCount !== 0) return;
    const role = await client.query('select 1 from pg_roles where rolname = $1', [serviceRole]);
    if (role.rowCount === 0) {
      const { escapeIdentifier, escapeLiteral } = client;
      await client.query(
        `create role ${escapeIdentifier(serviceRole)} login createdb password ${escapeLiteral(password)} ` +
          'in role pg_monitor, pg_signal_backend, pg_checkpoint',
      );
    }
    await client.query(`create database ${serviceDatabase} owner ${serviceRole}`);
  });
}

async function asOwner(port: number, password: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: ownerRole,
    password,
    database: 'postgres',
    ssl: false,
    application_name: 'annals start',
    connectionTimeoutMillis: 5_000,
  });
  // The running query reports a server that dies. Without a listener, this event would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
    await work(client);
  } finally {
    await client.end();
  }
}
