import type { TestDatabase } from '../support/server/database.ts';
import { tenant } from './history.ts';

export interface Attribution {
  entity: string;
  entityId: string;
  /** `name (id) for name (id)`, each where there is one. */
  who: string;
  correlationId: string | null;
  context: string | null;
}

/** Who made each change, and with which others, the oldest first. */
export async function attributionsOf({ pool }: TestDatabase, entity = 'flag'): Promise<Attribution[]> {
  const { rows } = await pool.query<Attribution>(
    `select k.entity, e.entity_id as "entityId",
            a.name || coalesce(' (' || a.actor_id || ')', '')
              || coalesce(' for ' || nullif(concat(a.behalf_name, ' (' || a.behalf_id || ')'), ''), '') as who,
            coalesce(e.correlation::text, e.correlation_text) as "correlationId", e.context
       from change_entry e
       join change_kind k on k.tenant = e.tenant and k.kind = e.kind
       join change_actor a on a.tenant = e.tenant and a.actor = e.actor
      where e.tenant = $1 and k.entity = $2 order by e.at, e.sequence`,
    [tenant, entity],
  );
  return rows;
}

/** Version 8 and the variant of RFC 9562, in lower case. */
const derivedId = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The correlation id of each change: a letter for each derived one, `-` for none. */
export function groupsOf(changes: readonly Attribution[]): string[] {
  const letters = new Map<string, string>();
  return changes.map(({ correlationId: id }) => {
    if (id === null || !derivedId.test(id)) return id ?? '-';
    return letters.getOrInsertComputed(id, () => String.fromCharCode(0x61 + letters.size));
  });
}

export const definition = `create table flags (id int primary key, enabled bool, by text, by_id text);
  create table events (id int primary key, who text, who_id int, company text, company_id uuid);
  alter table flags replica identity full; alter table events replica identity full`;

export const tables = {
  'public.flags': { entity: 'flag', actor: 'by', actorId: 'by_id' },
  'public.events': {
    entity: 'event',
    transactionActor: { actor: 'who', actorId: 'who_id', onBehalfOf: { name: 'company', id: 'company_id' } },
  },
};

const company = '0190a7b2-0000-7000-8000-000000000001';

/** Transactions by rows alone, and who made their changes of flags. */
export const byRows: [statements: string, who: string[]][] = [
  [
    `insert into flags values (11, true); insert into events values (1, 'Ada', 7, 'Acme', '${company}'), (2, 'Ben', 8, null, null);
     insert into flags values (12, true, 'Dora', null), (13, true, null, 'u-13')`,
    [`Ada (7) for Acme (${company})`, 'Dora', 'unknown (u-13)'],
  ],
  [
    `insert into events values (3, null, null, null, null), (4, null, null, '', '${company}'); insert into flags values (14, true)`,
    [`unknown for  (${company})`],
  ],
];
