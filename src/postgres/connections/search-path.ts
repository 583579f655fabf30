import pg from 'pg';
import { OperatorError } from '../../core/errors.ts';
import { isDistributed } from '../is-distributed.ts';
import { isBehindPooler, withSettings } from './pooler.ts';

/**
 * The URL of Annals' own database with the search path of every connection: pg_catalog, the schema that has our tables, pg_temp. PostgreSQL
 * takes the function or operator with the fittest types of all schemas in the path, so that others could put their code before its own in
 * any other one. Says so in one line where others may create in our schema. Where a pooler keeps no settings, and in the sessions that a
 * cluster opens on its workers, the role's own path holds: throws an OperatorError if that has a schema in which others may create.
 */
export async function fixSearchPath(url: string, tell: (line: string) => void): Promise<string> {
  const own = await onConnection(url, async (client) => {
    // Nothing but this function is looked up in the path of the role.
    const { rows } = await client.query<{ schema: string | null }>('select pg_catalog.current_schema() as schema');
    return rows[0]?.schema ?? undefined;
  });
  if (own === undefined)
    throw new OperatorError('the search_path of the role of DATABASE_URL has no schema that is there');
  // Left out, pg_catalog comes first. Named there, new tables would go into it.
  const path = `${pg.escapeIdentifier(own)}, pg_temp`;
  const fixed = isBehindPooler(url) ? url : withSettings(url, { search_path: path });
  await onConnection(fixed, async (client) => {
    const { rows } = await client.query<{ search_path: string }>('show search_path');
    await client.query('begin; set local search_path = pg_catalog, pg_temp');
    const check = async (paths: readonly string[]) => {
      const others = paths.flatMap(schemasOf).filter((name) => !trusted.includes(name) && name !== own);
      for (const schema of await readSchemas(client, others)) {
        if (schema.creators.length > 0) throw new OperatorError(refusal(schema, path));
      }
    };
    await check(rows.map(({ search_path }) => search_path));
    for (const schema of await readSchemas(client, [own])) if (schema.creators.length > 0) tell(warning(schema));
    await client.query(`set local search_path = ${path}`);
    await check(await pathsOfWorkers(client));
    await client.query('commit');
  });
  return fixed;
}

const trusted = ['pg_catalog', 'pg_temp'];

interface Schema {
  name: string;
  quoted: string;
  /** Those who may create in it, or who made functions, operators or types there: `public`, and roles that could not act as Annals anyway. */
  creators: string[];
}

function warning({ quoted, creators }: Schema): string {
  const roles = creators.join(', ');
  return (
    `roles other than that of Annals may make functions and operators in its schema ${quoted}, or have made some: ${roles}. ` +
    `Annals may call them with its own rights. Run: revoke create on schema ${quoted} from ${roles}`
  );
}

function refusal({ quoted, creators }: Schema, path: string): string {
  return (
    `names of Annals' statements would be looked up in the schema ${quoted}, in which ${creators.join(', ')} may create: ` +
    'something between Annals and its database keeps no settings of a connection. Run this, and let the pooler, or the ' +
    `workers of the cluster, open their connections anew: alter role current_user in database NAME set search_path = ${path}`
  );
}

/** The names of the schemas of a search_path, as `show` writes it. */
function schemasOf(path: string): string[] {
  return [...path.matchAll(/"((?:[^"]|"")*)"|[^,\s]+/g)].map(([all, quoted]) => quoted?.replaceAll('""', '"') ?? all);
}

/** The paths of the sessions that a cluster opens on its workers. A worker that is away is left out. */
async function pathsOfWorkers(client: pg.Client): Promise<string[]> {
  if (!(await isDistributed(client))) return [];
  const { rows } = await client.query<{ result: string }>(
    `select result from pg_catalog.run_command_on_workers('show search_path') where success`,
  );
  return rows.map(({ result }) => result);
}

/** In a transaction that looks names up in pg_catalog alone. `$user` is the schema with the name of the role. */
async function readSchemas(client: pg.Client, names: readonly string[]): Promise<Schema[]> {
  const { rows } = await client.query<Schema>(schemasStatement, [names]);
  return rows;
}

// A schema that is not there can be made by those who may create schemas in the database. Roles that are members of ours, or own the database or
// our tables, need no function to do what we can do.
const schemasStatement = `
select named.name, quote_ident(resolved.name) as quoted, array(
         select distinct coalesce(quote_ident(role.rolname), 'public')
           from (select n.nspowner
                 union select acl.grantee from aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) as acl where acl.privilege_type = 'CREATE'
                 union select proowner from pg_proc where pronamespace = n.oid
                 union select oprowner from pg_operator where oprnamespace = n.oid
                 union select typowner from pg_type where typnamespace = n.oid
                 union select acl.grantee from aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) as acl
                        where n.oid is null and acl.privilege_type = 'CREATE') as creator (oid)
           left join pg_roles role on role.oid = creator.oid
          where creator.oid = 0
             or not (role.rolsuper or role.rolname = 'pg_database_owner' or role.oid = d.datdba
                     or pg_has_role(role.oid, current_user, 'member')
                     or exists (select from pg_class where relnamespace = n.oid and relname = 'migration' and relowner = role.oid))
          order by 1) as creators
  from unnest($1::text[]) with ordinality as named (name, place)
  cross join lateral (select case named.name when '$user' then current_user else named.name end as name) as resolved
  join pg_database d on d.datname = current_database()
  left join pg_namespace n on n.nspname = resolved.name
 order by named.place`;

async function onConnection<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'annals start',
    connectionTimeoutMillis: 5_000,
  });
  // The query that is under way gets the error too.
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
