import type { Routine } from './read-schema.ts';

// These say where a tenant is. They read no tables.
const aboutPlaces = ['change_lineage', 'change_placement'];

// What writes often enough that each shard has it. Whatever else writes is a statement or two.
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

/** The table and routine names that a shard routine uses, each with the name of the shard's own (docs/decisions/cluster.md). */
export interface ShardNames {
  /** The quoted name of the schema that the routine is for. */
  schema: string;
  /** The qualified names of the shard's tables, by the names of the distributed tables. */
  tables: ReadonlyMap<string, string>;
}

/** Whether each shard of a cluster gets the routine for itself: it reads tables of a tenant and changes nothing, or is a writer. */
export function isForShards({ name, text }: Routine): boolean {
  const changesNothing = isStable.test(partsOf(text).head) && !aboutPlaces.includes(name);
  return isOfTenant.test(text) && (changesNothing || writers.includes(name));
}

/**
 * The statement that creates the routine of a shard: that of one server, but with the tables of the shard. The database then
 * keeps its plans as on one server, because the cluster does not see it.
 */
export function createForShard(routine: Routine, all: readonly Routine[], { schema, tables }: ShardNames): string {
  const { head, body, tail } = partsOf(routine.text);
  const ofShard = body
    .replaceAll(
      /\b(from|join|into|update)(\s+)(\w+)\b/g,
      (_text, keyword: string, space: string, name: string) => `${keyword}${space}${tables.get(name) ?? name}`,
    )
    .replaceAll(/\b(\w+)(?=\()/g, (name) => (all.some((one) => one.name === name) ? `${schema}.${name}` : name));
  const created = head.replace(/^create function /m, `create function ${schema}.`);
  // The cluster lets a session of its own write to a shard, but a coordinator that has shards too calls the routine itself.
  const allowed = writers.includes(routine.name) ? created.replace(/as $/, `${allowWrites} as `) : created;
  return `${allowed}$$${ofShard}$$${tail}`;
}

/**
 * A routine of a cluster with a beginning that leaves the work to the routine of the tenant's shard, if there is one. Returns all
 * others as they are, those with out parameters among them: only routines call these.
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
  const given = `using ${names.join(', ')}`;
  const [, options = '', block = ''] = /^((?:\s*#[^\n]*\n)*)([\s\S]*)$/.exec(body) ?? [];
  const lines = [
    'declare',
    `  shard_schema constant text := ${writers.includes(routine.name) ? 'shard_routines_to_write' : 'shard_routines'}(of_tenant);`,
    ...(isSet ? [] : [`  shard_result ${result};`]),
    'begin',
    '  if shard_schema is not null then',
    ...(isSet
      ? [`    return query execute ${call} ${given};`, '    return;']
      : [`    execute ${call} into shard_result ${given};`, '    return shard_result;']),
    '  end if;',
  ];
  return { ...routine, text: `${head}$$${options}\n${lines.join('\n')}\n${block.trim()};\nend\n$$${tail}` };
}

function partsOf(text: string): { head: string; body: string; tail: string } {
  const [, head, body, tail] = /^([\s\S]*?)\$\$([\s\S]*)\$\$([\s\S]*)$/.exec(text) ?? [];
  // The body of a routine in one line is in quotes. None of those reads tables.
  if (head === undefined || body === undefined || tail === undefined) return { head: text, body: '', tail: '' };
  return { head, body, tail };
}
