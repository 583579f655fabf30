import pg from 'pg';
import { TenantMoved } from '../tenant-moved.ts';
import { tlsFailure } from './tls.ts';

/**
 * Milliseconds that a server has to cancel a statement or to roll back. Both are immediate, so a connection without an
 * answer by then is dead.
 */
export const maxSilence = 5_000;

/**
 * Closes the connection after so many milliseconds, unless the returned function is called before. Its statement then
 * rejects as on a lost connection, and a live server rolls its transaction back.
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

// Messages of the driver and its pool for lost or unavailable connections, which have no code.
const lost =
  /^(Connection terminated|Client has encountered a connection error|timeout expired|timeout exceeded when trying to connect|Cannot use a pool after|Client was closed)/;

/**
 * Whether an error of the driver means that the database is unreachable: no connection is available, or one was lost.
 * The server ends connections with FATAL errors, of which timeouts of a session (SQLSTATE class 25) say nothing about
 * it.
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

// Messages of a coordinator that loses a worker during a commit, for which Citus has no SQLSTATE.
const lostInCommit =
  /^(could not commit transaction .*on (at least one|any) active node|failed to prepare transaction )/;

/**
 * Whether an error of the driver means that the tenant's worker is unreachable while the coordinator is not: the
 * coordinator reports the loss of its connection as an ERROR, or passes on the worker's last error, with its address,
 * and ends the session. A tenant that has just moved counts too.
 */
export function isWorkerUnreachable(error: unknown): boolean {
  if (error instanceof TenantMoved) return true;
  if (!(error instanceof pg.DatabaseError)) return false;
  if (error.severity === 'ERROR' && lostInCommit.test(error.message)) return true;
  const isOfWorker = error.severity === 'ERROR' || /^from \S+:\d+$/.test(error.detail ?? '');
  return isOfWorker && /^(08|57P)/.test(error.code ?? '');
}

// Messages of the driver for an established connection that is lost.
const lostInUse = /^(Connection terminated unexpectedly|Client has encountered a connection error)/;

/**
 * Whether a connection was lost during a statement although the next one may succeed: when a worker goes away, a
 * coordinator ends all sessions with a connection to it, whatever tenant they serve.
 */
function isLost(error: unknown): boolean {
  if (isWorkerUnreachable(error)) return true;
  if (error instanceof pg.DatabaseError) return error.code === '57P01' || error.code === '57P02';
  if (!(error instanceof Error)) return false;
  return lostInUse.test(error.message) || ('code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE'));
}

/** Repeats a read once if its connection was lost. */
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

/** Whether an error of the driver means that the server lacks disk space, memory or connections (SQLSTATE class 53). */
export function isAtLimit(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code?.startsWith('53') === true;
}

/** Whether an error of the driver means that the server is a standby or read-only. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006';
}
