import type pg from 'pg';
import type { Tracer } from '../core/trace.ts';
import { jobPlaces } from '../desk/jobs/dispatcher.ts';
import { createPool } from '../postgres/connections/pool.ts';
import { createTenantPool, keptOf, sharesOf, type TenantPool } from '../postgres/connections/tenant-pool.ts';
import { createDatabase, type Database } from '../postgres/database.ts';

/** Milliseconds that a statement of `vital` may take. */
export const vitalStatementLimit = 10_000;

/** All connections of a process to its database, but those of the metrics. */
export interface Connections {
  /** Connections that tenants share. */
  pool: TenantPool;
  db: Database;
  /** Connections for what every call needs: only quick statements, so that no slow statement delays them. */
  vital: { pool: pg.Pool; db: Database };
  exports: { pool: TenantPool; db: Database };
  close(): Promise<void>;
}

export interface ConnectionsOptions {
  databaseUrl: string;
  /** How many processes share the database on one port. */
  processes: number;
  onLostConnection: (error: Error) => void;
  tracer: Tracer | undefined;
}

/** Makes the pools. They open their connections when these are first needed. */
export function createConnections({
  databaseUrl,
  processes,
  onLostConnection,
  tracer,
}: ConnectionsOptions): Connections {
  const shares = sharesOf(processes);
  const pool = createTenantPool(databaseUrl, { onLostConnection, tracer, ...shares, kept: keptOf(shares) });
  const vitalPool = createPool(databaseUrl, {
    onLostConnection,
    maximum: 2,
    statementLimit: vitalStatementLimit,
    tracer,
  });
  // An export holds its connection until it ends. A tenant has one at a time, and it may read all the time.
  const exportLimits = {
    reads: jobPlaces.EXPORT.places,
    writes: 0,
    slow: jobPlaces.EXPORT.places,
    readsFor: 'exports',
    statementLimit: Number.POSITIVE_INFINITY,
  };
  const exportsPool = createTenantPool(databaseUrl, { onLostConnection, tracer, ...exportLimits });
  const connections = {
    pool,
    db: createDatabase(pool),
    vital: { pool: vitalPool, db: createDatabase(vitalPool) },
    exports: { pool: exportsPool, db: createDatabase(exportsPool) },
  };
  return {
    ...connections,
    async close() {
      await Promise.all([connections, connections.vital, connections.exports].map(({ db }) => db.destroy()));
    },
  };
}
