import { ownerRole } from './schema-faults.ts';

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
