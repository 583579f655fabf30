import { ownerRole } from './outbox-schema.ts';

/** Why no row of the trigger's table may be converted; null if it may. Most tables have only built-in types. */
export const foreignCast = `case when exists (select from pg_attribute where attrelid = tg_relid and atttypid >= 16384 and not attisdropped)
    then annals.foreign_cast(tg_relid) end`;

/** The function called by the triggers, created by the owner of the outbox. */
export const foreignCastFunction = `-- PostgreSQL converts a value to JSON by its type's cast, whose function would run with the rights of the outbox's owner.
-- Trusted are those who may read all that is captured anyway: superusers, the database owner, the role that runs this SQL.
-- Returns a text that names an untrusted type.
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
 * The only statements of ours with columns of the application, which may have any name, in scope. By two rules of
 * PostgreSQL's grammar they cannot clash with ours:
 * - `q.*` in an expression is the row of relation `q`. A bare `q` would be a column `q`, if there is one.
 * - The first part of a two-part name is a relation or a block label, never a column. So a variable is written with its
 *   label (`trigger.rules`), or is a parameter (`$2`).
 */

const names = [
  'source',
  'target',
  'rules',
  'ids',
  'ignored',
  'texts',
  'later',
  'refused',
  'actor',
  'context',
  'said',
] as const;
/** How a statement refers to what the trigger knows. */
type Names = Readonly<Record<(typeof names)[number], string>>;

const namedBy = (write: (name: string, index: number) => string) =>
  Object.fromEntries(names.map((name, index) => [name, write(name, index)])) as Names;
const variables = namedBy((name) => `trigger.${name}`);
const parameters = namedBy((_name, index) => `$${index + 1}`);

/** The `document` of an outbox row; if the id changed, with the part: 1 is the delete, 2 the create. */
export function documentOfPart(hasParts: string, document: string): string {
  return `case when ${hasParts} then coalesce(${document}, '{}') || jsonb_build_object('part', part) else ${document} end`;
}

/** The document of an outbox row, with what the application says. */
export function withWho(document: string, said: string): string {
  return `coalesce(${document} || ${said}, ${document}, ${said})`;
}

// PostgreSQL returns old and new rows of an update in the same order, which alone pairs them.
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

/** The statements of annals.write_statement. */
export const writeStatements = Object.entries(operations)
  .map(
    ([operation, { changes }]) => `  if tg_op = '${operation}' then\n${writeRows(changes, variables)};
    get diagnostics written = row_count;
  end if;`,
  )
  .join('\n');

/** The format of annals.write_truncate: its arguments are a row's values and the table. */
export const writeTruncate = writeRows(
  `select ${changeOf('row(%1$s)::%2$s', 'null', parameters)} as c from only %2$s as q`,
  parameters,
);

function changeOf(before: string, after: string, named: Names): string {
  const { target, rules, ids, ignored, texts, later, refused } = named;
  return `annals.change_of(${[before, after, target, rules, ids, ignored, texts, later, refused].join(', ')})`;
}

// Each "offset 0" prevents recomputation of the inner values.
function writeRows(changes: string, { source, actor, context, said }: Names): string {
  return `    insert into annals.outbox (lane, at, transaction, source, before, after, document, actor, context, fault)
    select annals.lane_of(${source}, case when part = 2 then (c).new_id else (c).id end), clock_timestamp(), pg_current_xact_id(), ${source},
           (c).before, (c).after, ${withWho(documentOfPart('(c).new_id <> (c).id', '(c).document'), said)}, ${actor}, ${context}, (c).fault
      from (select computed.c, generate_series(1, case when (computed.c).new_id <> (computed.c).id then 2 else 1 end) as part
              from (${changes} offset 0) as computed
             where (computed.c).id is not null
            offset 0) as parted`;
}
