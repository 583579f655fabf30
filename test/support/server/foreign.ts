import type { TestDatabase } from './database.ts';

/**
 * Leaves a database as a copy of its rows from another server has it, a server whose transaction ids were far higher:
 * the names, entries and positions have its ids, and the row of the origin was written by another transaction than it
 * tells.
 */
export async function makeForeign({ pool }: TestDatabase): Promise<void> {
  await pool.query(`
    update change_entry set recorded = (recorded::text::bigint + 1000000000000)::text::xid8;
    update change_kind set registered = (registered::text::bigint + 1000000000000)::text::xid8;
    update change_actor set registered = (registered::text::bigint + 1000000000000)::text::xid8;
    update change_delta set transaction = (transaction::text::bigint + 1000000000000)::text::xid8;
    update change_position set snapshot = '1000000000000:1000000000000:';
    update database_origin set relation = relation`);
}
