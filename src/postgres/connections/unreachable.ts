import pg from 'pg';
import { TenantMoved } from '../tenant-moved.ts';
import { tlsFailure } from './tls.ts';

/**
 * Milliseconds that a server has to end a statement that it was asked to cancel, and to roll back. Both take no time, so a
 * connection without an answer after that is dead.
 */
export const maxSilence = 5_000;

/**
 * Closes the connection after so many milliseconds, unless the caller calls the returned function before. The statement
 * under way then rejects as on any lost connection, and a server that is there rolls its transaction back.
 */
export function closeAfter(client: pg.PoolClient, milliseconds: number): () => void {
  const timer = setTimeout(() => void client.end().catch(() => {}), milliseconds);
  return () => clearTimeout(timer);
}

const networkCodes: readonly unknown[] = [
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
];

// What the driver and its pool say when a connection is lost or not available. These errors have no code.
const lost =
  /^(Connection terminated|Client has encountered a connection error|timeout expired|timeout exceeded when trying to connect|Cannot use a pool after|Client was closed)/;

/**
 * Whether an error of the driver means that the database is not reachable: no connection is available, or the connection
 * was lost. The server ends a connection with a FATAL error. But the end of a session that took
 * too long (SQLSTATE class 25) says nothing about the server.
 */
export function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof pg.DatabaseError) {
    if (error.code?.startsWith('08') || error.code?.startsWith('57P')) return true;
    return (error.severity === 'FATAL' || error.severity === 'PANIC') && error.code?.startsWith('25') !== true;
  }
  if (error instanceof AggregateError) return error.errors.some(isUnreachable);
  const isOfNetwork = 'code' in error && networkCodes.includes(error.code);
  return isOfNetwork || lost.test(error.message) || tlsFailure(error) !== undefined;
}

// What the coordinator of a cluster says when a worker is lost during a commit. Citus has no SQLSTATE of its own for it.
const lostInCommit =
  /^(could not commit transaction .*on (at least one|any) active node|failed to prepare transaction )/;

/**
 * Whether an error of the driver means that the worker of a cluster that has the tenant cannot be reached, while the
 * coordinator can: it reports in its own words what became of its connection, and goes on. Or it passes on the last
 * words of the worker, with its address, and ends the session. A tenant that has just moved counts as well.
 */
export function isWorkerUnreachable(error: unknown): boolean {
  if (error instanceof TenantMoved) return true;
  if (!(error instanceof pg.DatabaseError)) return false;
  if (error.severity === 'ERROR' && lostInCommit.test(error.message)) return true;
  const isOfWorker = error.severity === 'ERROR' || /^from \S+:\d+$/.test(error.detail ?? '');
  return isOfWorker && /^(08|57P)/.test(error.code ?? '');
}

// What the driver says when a connection is lost that was there.
const lostInUse = /^(Connection terminated unexpectedly|Client has encountered a connection error)/;

/**
 * Whether an error of the driver means that a connection was lost under a statement, though the next one may well be answered: the
 * coordinator of a cluster ends its sessions that kept a connection to a worker which goes away, whatever tenant they ask for.
 */
function isLost(error: unknown): boolean {
  if (isWorkerUnreachable(error)) return true;
  if (error instanceof pg.DatabaseError) return error.code === '57P01' || error.code === '57P02';
  if (!(error instanceof Error)) return false;
  return lostInUse.test(error.message) || ('code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE'));
}

/** Carries a read out once more if its connection was lost. Only for what changes nothing. */
export async function readAgainIfLost<Result>(
  read: () => Result | Promise<Result>,
  mayRepeat: () => boolean = () => true,
): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    if (!isLost(error) || !mayRepeat()) throw error;
    return await read();
  }
}

/** Whether an error of the driver means that the server is at its limit for now: its disk is full, or it lacks memory (SQLSTATE class 53). */
export function isAtLimit(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code?.startsWith('53') === true;
}

/** Whether an error of the driver means that the server is a standby, or was set to read alone. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006';
}
