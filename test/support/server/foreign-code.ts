import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { SourceServer } from './source-server.ts';

/** The template of `plantForeignCode`. */
export const hostileTemplate = 'hostile';

/**
 * Makes a template for databases of the server: its schema `public` has functions, operators, types and views under the
 * names of PostgreSQL's own, which a role without rights has made. Each counts its calls. It has only the functions
 * whose names stand in the product's files: the product cannot call others by name, and to make all of them takes long.
 */
export async function plantForeignCode(server: SourceServer): Promise<void> {
  await onPlainPath(server.url, (client) => client.query(`create database ${hostileTemplate}`));
  const template = Object.assign(new URL(server.url), { pathname: hostileTemplate });
  await onPlainPath(template.href, async (client) => {
    await client.query('create temp table word as select unnest($1::text[]) as word', [wordsOfProduct()]);
    await client.query('grant select on word to public');
    await client.query(plant);
  });
}

/** All words of Annals' own files, in lower case. */
function wordsOfProduct(): string[] {
  const root = join(import.meta.dirname, '..', '..', '..');
  const texts = globSync(['src/**/*.ts', 'sql/**/*.sql', 'migrations/**/*.sql'], { cwd: root }).map((file) =>
    readFileSync(join(root, file), 'utf8'),
  );
  return [...new Set(texts.flatMap((text) => text.toLowerCase().match(/[a-z_][a-z_0-9]*/g) ?? []))];
}

/** From now on a database made of the template looks names up in `public` first. `url` is that of a superuser. */
export async function lookInPublicFirst(url: string): Promise<void> {
  await onPlainPath(url, (client) =>
    client.query(
      'do $$ begin execute format($f$alter database %I set search_path = public, pg_catalog$f$, current_database()); end $$',
    ),
  );
}

/** What of it was called, by which roles; empty where nothing was. */
export async function foreignCalls(url: string): Promise<string[]> {
  return await onPlainPath(url, async (client) => {
    const { rows } = await client.query<{ what: string }>(
      `select distinct what || ' by ' || by_role as what from public.foreign_call
       union all select 'in a transaction that failed' from public.foreign_calls
                  where is_called and not exists (select from public.foreign_call)`,
    );
    return rows.map(({ what }) => what);
  });
}

/** Runs work on a connection that does not see the planted code. */
export async function onPlainPath<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url, options: '-c search_path=pg_catalog' });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

// What cannot be made is left out, for instance what takes arguments of the type "internal". Where PostgreSQL has one
// function for several types, there are also functions for each type, because these fit better.
const plant = `
do $$ begin if to_regrole('mallory') is null then create role mallory; end if; end $$;
grant create, usage on schema public to mallory;
set role mallory;
set check_function_bodies = off;
create sequence public.foreign_calls;
grant all on public.foreign_calls to public;
create table public.foreign_call (what text, by_role text);
grant all on public.foreign_call to public;
create function public.foreign_called(what text) returns bool language plpgsql as $$ begin
  perform pg_catalog.nextval('public.foreign_calls');
  insert into public.foreign_call values (what, current_user);
  return true;
end $$;
do $plant$
declare
  fitting constant text[] := '{text,text[],name,int2[],int4,int4[],int8,int8[],oid,oid[],jsonb,bool,regclass,timestamptz}';
  statement text;
begin
  for statement in
    with made (name, takes, gives, what) as (
      select proname::text, pg_get_function_identity_arguments(oid), pg_get_function_result(oid), oid::regprocedure::text
        from pg_proc where pronamespace = 'pg_catalog'::regnamespace and prokind in ('f', 'a', 'w') and proname in (select word from word)
      union all
      select names.name, concat_ws(', ', one, other), one, names.name || '(' || concat_ws(', ', one, other) || ')'
        from (select distinct proname::text as name, case when provariadic = 0 then pronargs - pronargdefaults else 1 end as fewest,
                              case when provariadic = 0 then pronargs else 2 end as most
                from pg_proc
               where pronamespace = 'pg_catalog'::regnamespace and provolatile <> 'v' and proname in (select word from word)
                 and (provariadic = '"any"'::regtype or exists (select from unnest(proargtypes::oid[]) as a where a::regtype::text like 'any%'
                                                                or a = '"any"'::regtype))) as names
        cross join unnest(fitting) as one cross join unnest(fitting || null) as other
        where num_nonnulls(one, other) between fewest and most
      union all
      select 'operator_' || oid, concat_ws(', ', nullif(oprleft, 0)::regtype, oprright::regtype), oprresult::regtype::text, oid::regoperator::text
        from pg_operator where oprnamespace = 'pg_catalog'::regnamespace
      union all
      select 'operator_' || oprname::text || '_' || one || '_' || other, one || ', ' || other, case when oprresult = 'bool'::regtype then 'bool' else one end,
             one || ' ' || oprname || ' ' || other
        from (select distinct on (oprname) oprname, oprresult from pg_operator
               where oprname in ('||', '=', '<>', '->', '->>', '-', '<', '>', '~', '~~', '&', '#>', '#>>', '#-', '@>') order by oprname) as o
        cross join unnest(fitting) as one cross join unnest(fitting) as other
    )
    select format('create function public.%I(%s) returns %s language plpgsql as %L', name, takes, gives,
                  format('begin perform public.foreign_called(%L); %s end', what,
                         case when gives ~ '^(SETOF|TABLE)' then 'return;' else 'return null;' end)) from made
    union all
    select format('create operator public.%s (%s rightarg = %s, function = public.%I)', oprname,
                  case when oprleft <> 0 then 'leftarg = ' || oprleft::regtype || ',' end, oprright::regtype, 'operator_' || oid)
      from pg_operator where oprnamespace = 'pg_catalog'::regnamespace
    union all
    select format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.%I)', oprname, one, other,
                  'operator_' || oprname || '_' || one || '_' || other)
      from unnest('{||,=,<>,->,->>,-,<,>,~,~~,&,#>,#>>,#-,@>}'::text[]) as oprname
      cross join unnest(fitting) as one cross join unnest(fitting) as other
    union all
    select format('create domain public.%I as pg_catalog.%1$I check (public.foreign_called(%L))', type, 'type ' || type)
      from unnest('{text,name,oid,regclass,regnamespace,regprocedure,regrole,jsonb,uuid,xid8,timestamptz,numeric}'::text[]) as type
    union all
    select format('create view public.%I as select * from pg_catalog.%1$I where public.foreign_called(%L)', relname, 'view ' || relname)
      from pg_class where relnamespace = 'pg_catalog'::regnamespace and relkind in ('r', 'v')
  loop
    begin
      execute statement;
    exception when others then null;
    end;
  end loop;
  for statement in
    select format('grant select on public.%I to public', relname) from pg_class where relnamespace = 'public'::regnamespace and relkind = 'v'
  loop
    execute statement;
  end loop;
end $plant$;
reset role;
`;
