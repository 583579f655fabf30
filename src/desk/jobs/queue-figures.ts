import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import type { JobType } from './job.ts';

/** The unfinished jobs of all tenants. A running job may also be pausing before a retry. */
export interface OpenJobs {
  readonly type: JobType;
  readonly state: 'waiting' | 'running';
  readonly count: number;
  /** Seconds since the oldest was queued; 0 without any. */
  readonly oldest: number;
}

const types: readonly JobType[] = ['AGENT_CHAT', 'EXPORT'];

/** The numbers by type and state, from the indexes of open jobs. */
export async function readOpenJobs(db: Database): Promise<OpenJobs[]> {
  const figures = sql`type, count(*) as count,
    extract(epoch from clock_timestamp() - min(queued_at))::double precision as oldest`;
  const { rows: waiting } = await sql<Omit<OpenJobs, 'state'>>`
    select ${figures} from job where status = 'in_progress' and held_until is null group by type`.execute(db);
  const { rows: running } = await sql<Omit<OpenJobs, 'state'>>`
    select ${figures} from job where status = 'in_progress' and held_until is not null group by type`.execute(db);
  return types.flatMap((type) => {
    const ofType = { type, count: 0, oldest: 0 };
    const find = (rows: typeof waiting) => rows.find((row) => row.type === type);
    return [
      { ...ofType, ...find(waiting), state: 'waiting' as const },
      { ...ofType, ...find(running), state: 'running' as const },
    ];
  });
}
