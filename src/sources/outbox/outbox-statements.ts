import { ownerRole } from './outbox-schema.ts';

/** In each trigger: why no row of the table may be converted; null where it may. Most tables have types of PostgreSQL alone. */
export const foreignCast = `case when exists (select from pg_attribute where attrelid = tg_relid and atttypid >= 16384 and not attisdropped)
    then annals.foreign_cast(tg_relid) end`;

/** The function that the triggers call, made as the owner of the outbox. */
export const foreignCastFunction = `-- PostgreSQL converts a value to JSON by the cast of its type. The cast's function would run with the rights of the outbox's owner, who may
-- read all that is captured. Those who may read that anyway are trusted: superusers, the owner of the database, who ran this SQL.
-- Otherwise a text that says which type of the table it is.
create or replace function annals.foreign_cast(target regclass) returns text
language sql stable set search_path = pg_catalog, pg_temp as $annals$
  with recursive used as (
    select atttypid as oid from pg_attribute where attrelid = target and attnum > 0 and not attisdropped
    union
    select part.oid from used join pg_type t using (oid)
     cross join lateral (select t.typbasetype union all select t.typelem
                         union all select atttypid from pg_attribute
                                    where attrelid = t.typrelid and attnum > 0 and not attisdropped) as part (oid)
     where part.oid <> 0
  )
  select format('the type %s has a cast to json by %s, which would run with the rights of ${ownerRole}', castsource::regtype, proowner::regrole)
    from used join pg_cast on castsource = used.oid and casttarget = 'json'::regtype join pg_proc p on p.oid = castfunc
    join pg_database d on datname = current_database()
   where not pg_has_role(proowner, '${ownerRole}', 'member') and proowner <> datdba
   limit 1
$annals$;`;

/*
 * The only statements of ours that have columns of the application in scope, which may have any name. Two rules of PostgreSQL's grammar keep its
 * names and ours apart, whatever they are:
 * - `q.*` in an expression is the row of the relation `q`. A bare `q` would be the column `q` where there is one.
 * - In a name of two parts the first is a relation or the label of a block, never a column. So a variable has its label (`trigger.rules`), or
 *   is a parameter (`$2`).
 */

/** How the statement names what the trigger knows. */
interface Names {
  readonly source: string;
  readonly target: string;
  readonly rules: string;
  readonly ids: string;
  readonly ignored: string;
  readonly texts: string;
  readonly later: string;
  readonly refused: string;
  readonly actor: string;
  readonly context: string;
}

const variables: Names = {
  source: 'trigger.source',
  target: 'trigger.target',
  rules: 'trigger.rules',
  ids: 'trigger.ids',
  ignored: 'trigger.ignored',
  texts: 'trigger.texts',
  later: 'trigger.later',
  refused: 'trigger.refused',
  actor: 'trigger.actor',
  context: 'trigger.context',
};

const parameters: Names = {
  source: '$1',
  target: '$2',
  rules: '$3',
  ids: '$4',
  ignored: '$5',
  texts: '$6',
  later: '$7',
  refused: '$8',
  actor: '$9',
  context: '$10',
};

/** The `document` of an outbox row; for a row whose id changed, with the part that it is: the delete or the create. */
export function documentOfPart(hasParts: string, document: string): string {
  return `case when ${hasParts} then coalesce(${document}, '{}') || jsonb_build_object('part', part) else ${document} end`;
}

// PostgreSQL gives the old and the new rows of an update in the same order. Only this order tells which rows belong together.
const numbered = (rows: string) => `(select row_number() over () as place, coalesce(q.*) as content from ${rows} as q)`;
const operations = {
  INSERT: { rows: 'new_rows', changes: `select ${changeOf('null', 'q.*', variables)} as c from new_rows as q` },
  DELETE: { rows: 'old_rows', changes: `select ${changeOf('q.*', 'null', variables)} as c from old_rows as q` },
  UPDATE: {
    rows: 'old_rows',
    changes: `select ${changeOf('o.content', 'n.content', variables)} as c
                    from ${numbered('old_rows')} as o join ${numbered('new_rows')} as n using (place) order by place`,
  },
};

/** The statements of annals.write_statement: all rows of the operation into the outbox. */
export const writeStatements = Object.entries(operations)
  .map(([operation, { changes }]) => `  if tg_op = '${operation}' then\n${writeRows(changes, variables)};\n  end if;`)
  .join('\n');

/** The statement of annals.write_truncate, as a format whose arguments are the values of a row and the table. */
export const writeTruncate = writeRows(
  `select ${changeOf('row(%1$s)::%2$s', 'null', parameters)} as c from only %2$s as q`,
  parameters,
);

function changeOf(before: string, after: string, names: Names): string {
  const { target, rules, ids, ignored, texts, later, refused } = names;
  return `annals.change_of(${[before, after, target, rules, ids, ignored, texts, later, refused].join(', ')})`;
}

// Each "offset 0" keeps PostgreSQL from computing the values of the level below more than once.
function writeRows(changes: string, { source, actor, context }: Names): string {
  return `    insert into annals.outbox (lane, at, transaction, source, before, after, document, actor, context, fault)
    select annals.lane_of(${source}, case when part = 2 then (c).new_id else (c).id end), clock_timestamp(), pg_current_xact_id(), ${source},
           (c).before, (c).after, ${documentOfPart('(c).new_id <> (c).id', '(c).document')}, ${actor}, ${context}, (c).fault
      from (select computed.c, generate_series(1, case when (computed.c).new_id <> (computed.c).id then 2 else 1 end) as part
              from (${changes} offset 0) as computed
             where (computed.c).id is not null
            offset 0) as parted`;
}
