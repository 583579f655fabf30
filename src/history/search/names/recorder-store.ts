import { sql } from 'kysely';
import type { Database } from '../../../postgres/database.ts';
import type { RecordedBy } from '../../../recording/change.ts';

/** The source of recorded changes. Times are milliseconds since 1970. */
interface ChangeRecorder {
  readonly way: RecordedBy['way'];
  /** The client or the capture. */
  readonly by: string | null;
  readonly recorded: number;
}

export interface ChangeRecorders {
  /** The last to record comes first. */
  readonly recorders: readonly ChangeRecorder[];
  /** Only recorders that recorded after this moment are listed; undefined: all are. */
  readonly since: number | undefined;
}

/** Maximum recorders of an answer: those that recorded last. */
export const maxRecorders = 500;

/** The recorders of a tenant with their last times, including changes that are not folded yet, from one snapshot. */
export async function readRecorders(db: Database, tenant: string): Promise<ChangeRecorders> {
  const { rows } = await sql<{ way: RecordedBy['way'] | 'unknown'; by: string | null; recorded: number }>`
    select case known.recorder when 0 then 'unknown' when 1 then 'service' when 2 then 'import' else r.way end as way,
           r.name as by, max(known.recorded) as recorded
      from (
        select w.recorder, w.recorded from change_way w where w.tenant = ${tenant}
        union all
        select d.recorder, d.recorded from change_delta d where d.tenant = ${tenant} and d.recorder is not null
      ) as known
      left join change_recorder r on r.tenant = ${tenant} and r.recorder = known.recorder
      group by 1, 2
      order by min(known.recorder) = 0 desc, max(known.recorded) desc, 1, 2
      limit ${maxRecorders + 1}`.execute(db);
  const recorders = rows.flatMap(({ way, ...rest }) => (way === 'unknown' ? [] : [{ way, ...rest }]));
  return { recorders: recorders.slice(0, maxRecorders), since: rows.find(({ way }) => way === 'unknown')?.recorded };
}
