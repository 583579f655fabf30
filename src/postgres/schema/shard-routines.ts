import type { Routine } from './read-schema.ts';

// Routines about the place of a tenant, which read no tables.
const aboutPlaces = ['change_lineage', 'change_placement'];

// Frequent writers. Others are only a statement or two.
const writers = [
  'change_fold',
  'change_position_give',
  'change_position_mark',
  'change_position_write',
  'path_register',
  'receipt_write',
  'record_entries_numbered',
];

const allowWrites = 'set citus.enable_manual_changes_to_shards = on';

const isOfTenant = /^create function \w+\(\s*of_tenant text\b/m;
const isStable = /\bstable\b/;

/** The names of a shard's own tables and routines (docs/decisions/cluster.md). */
interface ShardNames {
  /** The quoted name of the schema that the routine is for. */
  schema: string;
  /** The qualified names of the shard's tables, by the names of the distributed tables. */
  tables: ReadonlyMap<string, string>;
}

/** Whether each shard gets its own copy of the routine: it only reads a tenant's tables, or is a writer. */
export function isForShards({ name, text }: Routine): boolean {
  const changesNothing = isStable.test(partsOf(text).head) && !aboutPlaces.includes(name);
  return isOfTenant.test(text) && (changesNothing || writers.includes(name));
}

/**
 * The statement that creates the routine of a shard: that of one server, with the tables of the shard. Hidden from the
 * cluster, the routine keeps its plans as on one server.
 */
export function createForShard(routine: Routine, all: readonly Routine[], { schema, tables }: ShardNames): string {
  const { head, body, tail } = partsOf(routine.text);
  const ofShard = body
    .replaceAll(
      /\b(from|join|into|update)(\s+)(\w+)\b/g,
      (_text, keyword: string, space: string, name: string) => `${keyword}${space}${tables.get(name) ?? name}`,
    )
    .replaceAll(/\b(\w+)(?=\()/g, (name) => (all.some((known) => known.name === name) ? `${schema}.${name}` : name));
  const created = head.replace(/^create function /m, `create function ${schema}.`);
  // A cluster lets its own sessions write to shards, but a coordinator with shards calls the routine in the client's.
  const allowed = writers.includes(routine.name) ? created.replace(/as $/, `${allowWrites} as `) : created;
  return `${allowed}$$${ofShard}$$${tail}`;
}

/**
 * A routine of a cluster that delegates to that of the tenant's shard, if there is one. Returns other routines
 * unchanged, also those with out parameters, which only routines call.
 */
export function preferShardRoutine(routine: Routine): Routine {
  if (!isForShards(routine)) return routine;
  const { head, body, tail } = partsOf(routine.text);
  const [, parameters = '', result = ''] = /\(([^)]*)\)\s*returns\s+(\w+(?:\[\])?)/.exec(head) ?? [];
  if (result === '' || !/language plpgsql/.test(head + tail)) return routine;
  const names = parameters.split(',').map((parameter) => parameter.trim().split(/\s+/)[0] ?? '');
  const isSet = result === 'table' || result === 'setof';
  const places = names.map((_name, index) => `$${index + 1}`).join(', ');
  const call = `format('select ${isSet ? '* from ' : ''}%I.${routine.name}(${places})', shard_schema)`;
  const values = `using ${names.join(', ')}`;
  const [, options = '', block = ''] = /^((?:\s*#[^\n]*\n)*)([\s\S]*)$/.exec(body) ?? [];
  const lines = [
    'declare',
    `  shard_schema constant text := ${writers.includes(routine.name) ? 'shard_routines_to_write' : 'shard_routines'}(of_tenant);`,
    ...(isSet ? [] : [`  shard_result ${result};`]),
    'begin',
    '  if shard_schema is not null then',
    ...(isSet
      ? [`    return query execute ${call} ${values};`, '    return;']
      : [`    execute ${call} into shard_result ${values};`, '    return shard_result;']),
    '  end if;',
  ];
  return { ...routine, text: `${head}$$${options}\n${lines.join('\n')}\n${block.trim()};\nend\n$$${tail}` };
}

function partsOf(text: string): { head: string; body: string; tail: string } {
  const [, head, body, tail] = /^([\s\S]*?)\$\$([\s\S]*)\$\$([\s\S]*)$/.exec(text) ?? [];
  // One-line routines have their body in quotes. None of them reads tables.
  if (head === undefined || body === undefined || tail === undefined) return { head: text, body: '', tail: '' };
  return { head, body, tail };
}
