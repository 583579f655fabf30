import pg from 'pg';
import type { PathPattern } from '../../core/path-pattern.ts';
import { isWrittenAsText } from '../../postgres/source/source-catalogue.ts';
import { rowRules } from '../../recording/mapping/apply-rules.ts';
import {
  columnsOfWho,
  keyColumns,
  type Mapping,
  type TableMapping,
  type ValueRules,
  type WhoPart,
} from '../../recording/mapping/mapping.ts';
import { createFunctions, isTooLarge, saidWho, setting, tooLarge } from './outbox-functions.ts';
import {
  createOutbox,
  createSchema,
  fixSearchPath,
  ownerRole,
  refuseForeignSchema,
  revokeFunctions,
  usedOnce,
} from './outbox-schema.ts';
import { withWho } from './outbox-statements.ts';

/**
 * The SQL that creates the outbox and the triggers of the mapped tables, in one transaction. Running it again updates
 * the triggers to the mapping. Masks and ignores apply in the triggers, before anything is stored.
 */
export function outboxSql(mapping: Mapping): string {
  return [
    '-- Made by annals outbox. Run it in the database of the application, as a role that owns the tables.',
    'begin;',
    fixSearchPath,
    "set local lock_timeout = '5s';",
    "set local client_min_messages = 'warning';",
    createSchema,
    createOutbox,
    createFunctions,
    transactionIndex(mapping),
    recordFunction(mapping),
    revokeFunctions,
    dropOthers([...mapping.tables.keys()]),
    ...[...mapping.tables.values()].map((table) => tableSql(mapping, table)),
    `revoke execute on function ${usedOnce} from session_user;`,
    '-- What was made has the rights that it is to have, whatever was there before.',
    refuseForeignSchema,
    'commit;',
    '-- The relay logs in as a role of yours that is a member of annals_relay:  grant annals_relay to …;',
    '-- To let a role write changes by hand:  grant usage on schema annals to …; grant execute on function annals.record to …;',
    '',
  ].join('\n');
}

/** In the order of annals.take_actor. */
const whoParts: readonly WhoPart[] = ['actor', 'actorId', 'onBehalfOf.name', 'onBehalfOf.id'];

/** A rule as annals.hide takes it. `*`: any key. */
function hideRules({ mask, ignore }: ValueRules, minIgnored: number): { path: string[]; masks: boolean }[] {
  const pathOf = ({ keys }: PathPattern) => keys.map((key) => key ?? '*');
  return [
    ...ignore
      .filter(({ keys }) => keys.length >= minIgnored)
      .map((pattern) => ({ path: pathOf(pattern), masks: false })),
    ...mask.map((pattern) => ({ path: pathOf(pattern), masks: true })),
  ];
}

/** Columns with a mask inside their values. */
function masksInside({ rules }: TableMapping): string[] {
  return rules.mask.flatMap(({ keys: [column, ...inside] }) => (inside.length === 0 ? [] : (column ?? [])));
}

function tableSql(mapping: Mapping, table: TableMapping): string {
  const { escapeLiteral } = pg;
  const dot = table.table.indexOf('.');
  const [schema, name] = [table.table.slice(0, dot), table.table.slice(dot + 1)];
  const target = `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;
  const ignored = [...rowRules(table).ignored];
  // Whole ignored columns are handled separately.
  const hide = hideRules(table.rules, 2);
  const rules = hide.length === 0 ? {} : { hide, json: [...table.json] };
  const needed = new Set(keyColumns(mapping, table, []));
  const { transactionActor } = table;
  for (const [, column] of columnsOfWho(transactionActor)) needed.add(column);
  return `do ${dollarQuoted(`
declare
  target constant regclass := to_regclass(${escapeLiteral(target)});
  ids text[] := ${table.id === undefined ? 'null' : textArray(table.id)};
  texts text[];
  missing text;
  leaf regclass;
  arguments text;
begin
  if target is null then raise exception 'there is no table %', ${escapeLiteral(table.table)}; end if;
  if exists (select from pg_class where oid = target and (relkind not in ('r', 'p') or relispartition)) then
    raise exception '% is no table, or a partition: the mapping must name the root', target;
  end if;
  if ids is null then
    select array_agg(a.attname::text order by k.place) into ids
      from pg_index i cross join lateral unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
     where i.indrelid = target and i.indisprimary and k.place <= i.indnkeyatts;
  end if;
  if ids is null then raise exception '% has no primary key, and the mapping names no id for it', target; end if;
  select string_agg(n, ', ') into missing from unnest(ids || ${textArray([...needed])}) as n
   where not exists (select from pg_attribute where attrelid = target and attname = n and attnum > 0 and not attisdropped);
  if missing is not null then raise exception '% has no column %', target, missing; end if;${
    table.truncate === 'ignore'
      ? ''
      : `
  if exists (select from pg_class where oid = target and relrowsecurity)
     and not exists (select from pg_roles where rolname = '${ownerRole}' and (rolsuper or rolbypassrls)) then
    raise warning 'row-level security hides the rows of % from ${ownerRole}, so the deletes of a truncate will be rejected', target
      using hint = 'A superuser can change that: alter role ${ownerRole} bypassrls';
  end if;`
  }
  -- JSON would show these values as objects.
  select coalesce(array_agg(a.attname::text), '{}') into texts
    from pg_attribute a
   where a.attrelid = target and a.attnum > 0 and not a.attisdropped and ${isWrittenAsText};
  select string_agg(n, ', ') into missing from unnest(${textArray(masksInside(table))}) as n where n = any (texts);
  if missing is not null then
    raise exception 'a mask of % leads into the column %, whose values are text: mask the whole column', target, missing;
  end if;
  arguments := format('%L, %L, %L, %L, %L, %L', ${escapeLiteral(table.table)}, ${escapeLiteral(JSON.stringify(rules))}, ids,
                      ${textArray(ignored)} || array(select attname::text from pg_attribute
                        where attrelid = target and attgenerated <> '' and not attisdropped), texts,
                      array(select attnum || ' ' || attname from pg_attribute where attrelid = target and attnum > 0 and not attisdropped));
  if annals.writes_by_row(target) then
    execute format('drop trigger if exists annals_insert on %1$s; drop trigger if exists annals_update on %1$s;
                    drop trigger if exists annals_delete on %1$s', target);
    execute format('create or replace trigger annals_row after insert or update or delete on %s
                    for each row execute function annals.write_row(%s)', target, arguments);
  else
    execute format('drop trigger if exists annals_row on %s', target);
    execute format('create or replace trigger annals_insert after insert on %s
                    referencing new table as new_rows for each statement execute function annals.write_statement(%s)', target, arguments);
    execute format('create or replace trigger annals_update after update on %s referencing old table as old_rows new table as new_rows
                    for each statement execute function annals.write_statement(%s)', target, arguments);
    execute format('create or replace trigger annals_delete after delete on %s
                    referencing old table as old_rows for each statement execute function annals.write_statement(%s)', target, arguments);
  end if;
  execute format('drop trigger if exists annals_actor on %s', target);${
    transactionActor.size === 0
      ? ''
      : `
  execute format('create trigger annals_actor after insert on %s for each row execute function annals.take_actor(%L, %L, %L, %L)',
                 target, ${whoParts.map((part) => escapeLiteral(transactionActor.get(part)?.column ?? '')).join(', ')});`
  }
  for leaf in select coalesce(p.relid, target) from (select 1) as one
                left join lateral (select relid from pg_partition_tree(target) where isleaf) as p on true
  loop
    ${
      table.truncate === 'ignore'
        ? `execute format('drop trigger if exists annals_truncate on %s', leaf);`
        : `execute format('grant select on %s to ${ownerRole}', leaf);
    execute format('grant usage on schema %I to ${ownerRole}', (select relnamespace::regnamespace from pg_class where oid = leaf));
    execute format('create or replace trigger annals_truncate before truncate on %s
                    for each statement execute function annals.write_truncate(%s)', leaf, arguments);`
    }
  end loop;
end `)};`;
}

/** The relay looks up the actor of a transaction by this index. */
function transactionIndex({ tables }: Mapping): string {
  return [...tables.values()].some(({ transactionActor }) => transactionActor.size > 0)
    ? 'create index if not exists outbox_transaction on annals.outbox (transaction);'
    : 'drop index if exists annals.outbox_transaction;';
}

/** Drops the triggers of tables that are no longer mapped. Those of partitions belong to the root. */
function dropOthers(tables: readonly string[]): string {
  return `do ${dollarQuoted(`
declare
  found record;
begin
  for found in
    select t.tgname, t.tgrelid::regclass as target
      from pg_trigger t join pg_proc p on p.oid = t.tgfoid
      join pg_class c on c.oid = coalesce(pg_partition_root(t.tgrelid), t.tgrelid) join pg_namespace n on n.oid = c.relnamespace
     where p.pronamespace = to_regnamespace('annals') and t.tgparentid = 0 and n.nspname || '.' || c.relname <> all (${textArray(tables)})
  loop
    execute format('drop trigger %I on %s', found.tgname, found.target);
  end loop;
end `)};`;
}

/** The function for changes that no trigger sees, with the rules of the entities. */
function recordFunction(mapping: Mapping): string {
  const rules = Object.fromEntries([...mapping.entities].map(([entity, own]) => [entity, hideRules(own, 1)]));
  return `create or replace function annals.record(
  entity text, entity_id text, before jsonb default null, after jsonb default null, tenant text default null,
  name text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as ${dollarQuoted(`
declare
  rules constant jsonb := ${pg.escapeLiteral(JSON.stringify(rules))};
  said constant jsonb := ${saidWho};
  document jsonb;
  fault text;
begin
  -- Bad data is rejected later and raises no error here, as in the triggers.
  begin
    select h.before, h.after into before, after
      from annals.hide_all(record.before, record.after, coalesce(rules -> record.entity, '[]')) as h;
    document := jsonb_strip_nulls(jsonb_build_object('tenant', tenant, 'entity', entity, 'entityId', entity_id, 'name', name));
    if ${isTooLarge} then fault := '${tooLarge}'; end if;
  exception when others then
    fault := format('the change cannot be written (SQLSTATE %s)', sqlstate);
  end;
  if fault is not null then
    before := null;
    after := null;
    document := jsonb_strip_nulls(jsonb_build_object(
      'tenant', left(tenant, 1000), 'entity', left(entity, 1000), 'entityId', left(entity_id, 1000)));
  end if;
  insert into annals.outbox (lane, at, transaction, before, after, document, actor, context, fault)
    values (annals.lane_of(coalesce(entity, ''), coalesce(entity_id, '')), clock_timestamp(), pg_current_xact_id(), before, after,
            ${withWho('document', 'said')},
            ${setting('annals.actor')}, ${setting('annals.context')}, fault);
  perform annals.count_changes(1);
end `)};`;
}

/** Text of the mapping in the body may contain any tag. */
function dollarQuoted(body: string): string {
  let tag = '$annals$';
  for (let number = 1; body.includes(tag); number++) tag = `$annals${number}$`;
  return `${tag}${body}${tag}`;
}

function textArray(values: readonly string[]): string {
  return `array[${values.map((value) => pg.escapeLiteral(value)).join(', ')}]::text[]`;
}
