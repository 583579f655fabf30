// Long because it lists what an application may have: types, shapes of tables, and kinds of statements.

import * as fc from 'fast-check';
import { Random } from './random.ts';

/** A random database of an application and what it does. Its statements are the same on every server of the version. */
export interface RandomApplication {
  /** Makes types and tables. Each runs alone, and may fail. */
  readonly definition: readonly string[];
  /** The tables of a mapping. */
  readonly tables: Readonly<Record<string, object>>;
  readonly transactions: readonly (readonly Statement[])[];
  /** Each returns rows of one table, to be compared. */
  readonly readings: readonly string[];
}

export interface Statement {
  readonly text: string;
  /** Whether the transaction continues from before the statement where that fails. */
  readonly isSafe: boolean;
}

/** What a masked value always holds. */
export const marker = 'canary';
/** The marker as text, and as PostgreSQL writes bytes. */
export const markerPattern = /canary|63616e617279/i;

/** The role of an application without rights on anything of Annals. The server has it. */
export const applicationRole = 'observed_application';

type Draw = (random: Random) => string;
const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
const pick =
  (...values: string[]): Draw =>
  (random) =>
    random.pick(values);
const secretText: Draw = (random) => quoted(`${marker}-${random.below(1000)}`);

/** Base types with values that PostgreSQL can read, by name. */
const types: Readonly<Record<string, Draw>> = {
  bool: pick('true', 'false'),
  int2: pick('-32768', '0', '7'),
  int8: pick('9223372036854775807', '-1', '0'),
  float4: pick("'NaN'", '1e-30', '0.1', "'-Infinity'"),
  float8: pick("'NaN'", '1e300', '-0.0', '0.1'),
  numeric: pick('1.10', '1.1', "'NaN'", '1e100', "'Infinity'", '-0'),
  'numeric(6,2)': pick('1.10', '9999999'),
  money: pick("'12.50'", "'-1'"),
  text: pick("'x'", "''", `repeat('long ', 3000)`, "E'\\x01\\n\\\\'", 'null'),
  'varchar(3)': pick("'abc'", "'too long'", "''"),
  'char(4)': pick("'a'", "'abcd'"),
  '"char"': pick("'a'", "''"),
  name: pick("'name'", "''"),
  bytea: pick("'\\x00ff'", "''"),
  uuid: pick("'00000000-0000-0000-0000-000000000001'", "'no uuid'"),
  date: pick("'2026-01-02'", "'infinity'", "'0044-03-15 BC'"),
  time: pick("'24:00'", "'04:05:06.789'"),
  timetz: pick("'04:05:06+02'"),
  timestamp: pick("'2026-01-02 03:04:05'", "'-infinity'", "'294276-12-31'"),
  timestamptz: pick("'2026-01-02 03:04:05+02'", "'infinity'", "'0001-01-01 BC'"),
  interval: pick("'1 year -2 days 03:00'", "'0'"),
  inet: pick("'::1'", "'10.0.0.1/8'"),
  cidr: pick("'10.0.0.0/8'", "'10.0.0.1/8'"),
  macaddr: pick("'08:00:2b:01:02:03'"),
  macaddr8: pick("'08:00:2b:01:02:03:04:05'"),
  'bit(3)': pick("B'101'", "B'1'"),
  varbit: pick("B'1'", "B''"),
  point: pick("'(1,2)'", "'(NaN,0)'"),
  line: pick("'{1,2,3}'"),
  lseg: pick("'[(0,0),(1,1)]'"),
  box: pick("'(1,1),(0,0)'"),
  path: pick("'[(0,0),(1,1)]'"),
  polygon: pick("'((0,0),(1,1),(1,0))'"),
  circle: pick("'<(0,0),5>'"),
  json: pick(`'{"a": "\\u0000"}'`, "'[1e999999]'", `'{"a": "\\ud800"}'`, `'{"a": 1, "a": 2}'`, "'null'", "'{'"),
  jsonb: pick(`'{"id": 7, "a": [1, {}]}'`, "'null'", `'"text"'`, "'5'", `'{"a": "\\u0000"}'`),
  jsonpath: pick(`'$.a'`),
  xml: pick(`'<a>&lt;</a>'`, "'<'"),
  tsvector: pick("'a fat cat'"),
  tsquery: pick("'fat & rat'"),
  int4range: pick("'[1,5)'", "'empty'", "'(,)'"),
  numrange: pick("'[1.1,2.2]'"),
  tstzrange: pick("'[2026-01-01,)'"),
  int4multirange: pick("'{[1,3),[5,7)}'"),
  oid: pick('5'),
  xid: pick("'5'"),
  xid8: pick("'5'"),
  cid: pick("'5'"),
  tid: pick("'(1,2)'"),
  pg_lsn: pick("'0/16B3748'"),
  regclass: pick("'pg_class'", "'nothing_like_it'"),
  regtype: pick("'int4'"),
  int2vector: pick("'1 2'"),
  oidvector: pick("'1 2'"),
  pg_snapshot: pick("'10:20:10,14'"),
  shop_level: pick("'low'", "'high'", "'none'"),
  shop_short: pick("'ok'", "'too long for it'"),
  shop_checked: pick('1', '-1'),
  shop_pair: pick(`'(1,"a b")'`, "'(,)'", "row(1, 'x')"),
  shop_nested: pick(`row(1, row(2, 'x'), '{"a": "\\u0000"}')`),
  'int4[]': pick("'{1,2}'", "'{}'", "'[0:1]={1,2}'", "'{{1},{2}}'"),
  'text[]': pick(`'{a,"b c",null}'`),
  'json[]': pick(`array['{"a": "\\u0000"}']::json[]`),
  'shop_pair[]': pick(`array['(1,x)']::shop_pair[]`),
  'shop_short[]': pick(`'{ok}'`),
  'shop_level[]': pick(`'{low}'`),
};

/** Types whose values can hold a text, for columns that are masked. */
const secretTypes: Readonly<Record<string, Draw>> = {
  text: secretText,
  'varchar(40)': secretText,
  name: secretText,
  bytea: (random) => `convert_to(${secretText(random)}, 'UTF8')`,
  json: (random) => quoted(`{"a": "${marker}", "b": [${random.pick(['1', '"\\u0000"', '1e999999'])}]}`),
  jsonb: (random) =>
    quoted(random.pick([`{"id": ${random.below(9)}, "${marker}": 1}`, `"${marker}"`, `["${marker}"]`])),
  xml: () => quoted(`<a>${marker}</a>`),
  tsvector: () => quoted(`${marker} a`),
  shop_secret: secretText,
  shop_pair: (random) => `row(${random.below(5)}, ${secretText(random)})`,
  'text[]': (random) => `array[${secretText(random)}]`,
  'shop_pair[]': (random) => `array[row(1, ${secretText(random)})]::shop_pair[]`,
  shop_canary: () => quoted(marker),
};

const typeDefinitions = [
  `create type shop_level as enum ('low', 'high', 'none')`,
  `create type shop_canary as enum ('${marker}', 'other')`,
  'create domain shop_short as text check (length(value) < 5)',
  'create domain shop_secret as text not null',
  `create function shop_check(int) returns bool language plpgsql as $$ begin return $1 > 0 and current_user <> 'annals_outbox'; end $$`,
  'create domain shop_checked as int check (shop_check(value))',
  'create type shop_pair as (a int, b text)',
  'create type shop_nested as (a int, pair shop_pair, doc json)',
  `create function shop_nothing() returns trigger language plpgsql as 'begin return null; end'`,
  `create function shop_same() returns trigger language plpgsql as
    'begin if tg_op = ''DELETE'' then return old; end if; return new; end'`,
];

const names = [
  ...[
    't',
    'q',
    'r',
    'c',
    'o',
    'n',
    'a',
    'one',
    'old',
    'new',
    'row',
    'select',
    'table',
    'user',
    'order',
    'Ignored',
    'ignored',
    'refused',
  ],
  ...[
    'before',
    'after',
    'fault',
    'part',
    'parts',
    'place',
    'content',
    'source',
    'target',
    'rules',
    'ids',
    'texts',
    'later',
    'actor',
  ],
  ...[
    'context',
    'trigger',
    'old_rows',
    'new_rows',
    'old_row',
    'new_row',
    'a b',
    'a"b',
    "a'b",
    'ä',
    '%',
    '%s',
    '%1$s',
    '$1',
    '$annals$',
  ],
  ...[
    'tg_op',
    'document',
    'key',
    'value',
    'lane',
    'number',
    'at',
    'transaction',
    'outbox',
    'annals',
    '__proto__',
    'constructor',
    'computed',
  ],
  ...[
    'parted',
    'change',
    'col',
    'record',
    'entity',
    'before_id',
    'public',
    'pg_catalog',
    'null',
    'true',
    'current_user',
    'x'.repeat(63),
  ],
];

interface Column {
  readonly name: string;
  readonly type: string;
  readonly draw: Draw;
  readonly isMasked: boolean;
}

interface Table {
  readonly name: string;
  /** `"schema"."table"`. */
  readonly target: string;
  readonly columns: readonly Column[];
  readonly key: readonly string[];
  readonly hasIdentity: boolean;
  readonly below: readonly string[];
  readonly definition: readonly string[];
  readonly mapping: object;
}

const id = (name: string) => `"${name.replaceAll('"', '""')}"`;

const columnSketch = fc.record({
  name: fc.nat(1000),
  type: fc.nat(1000),
  isMasked: fc.boolean(),
  isNotNull: fc.boolean(),
});
const tableSketch = fc.record({
  name: fc.nat(1000),
  columns: fc.array(columnSketch, { maxLength: 6, size: 'max' }),
  key: fc.constantFrom('one', 'several', 'none', 'identity', 'deferred'),
  shape: fc.constantFrom('plain', 'plain', 'plain', 'partitioned', 'inherited', 'unlogged', 'tree'),
  security: fc.constantFrom('none', 'none', 'enabled', 'forced'),
  computed: fc.constantFrom('none', 'none', 'stored', 'virtual', 'virtual that fails'),
  own: fc.constantFrom('none', 'none', 'after', 'before', 'first'),
  ignores: fc.boolean(),
});
const statement = fc.record({
  kind: fc.nat(1000),
  table: fc.nat(1000),
  seed: fc.nat(1_000_000),
  isSafe: fc.constantFrom(true, true, true, false),
});
const transaction = fc.record({
  begin: fc.constantFrom(
    'begin',
    'begin',
    'begin isolation level repeatable read',
    'begin isolation level serializable',
    '',
  ),
  setting: fc.nat(1000),
  statements: fc.array(statement, { minLength: 1, maxLength: 6, size: 'max' }),
  end: fc.constantFrom('commit', 'commit', 'commit', 'commit', 'rollback', `prepare transaction 'observed'`),
});

/** Random applications for servers of the version, with at most so many transactions. */
export function applicationArbitrary(version: number, maxTransactions = 6): fc.Arbitrary<RandomApplication> {
  return fc
    .record({
      tables: fc.array(tableSketch, { minLength: 1, maxLength: 3 }),
      transactions: fc.array(transaction, { minLength: 1, maxLength: maxTransactions, size: 'max' }),
    })
    .map(({ tables, transactions }) => {
      const made = tables.map((one, index) => tableOf(one, index, version));
      return {
        definition: [...typeDefinitions, ...made.flatMap(({ definition }) => definition), grants],
        tables: Object.fromEntries(made.map(({ name, mapping }) => [`public.${name}`, mapping])),
        transactions: transactions.map((one) => transactionOf(one, made)),
        readings: made.map(
          ({ target }) => `select tableoid::regclass::text || ' ' || (q.*)::text as row from ${target} as q order by 1`,
        ),
      };
    });
}

const grants = `grant usage on schema public to ${applicationRole}; grant all on all tables in schema public to ${applicationRole};
  grant all on all sequences in schema public to ${applicationRole}`;

type Sketch<Of> = Of extends fc.Arbitrary<infer Value> ? Value : never;

function tableOf(sketch: Sketch<typeof tableSketch>, index: number, version: number): Table {
  const name = `${names[sketch.name % names.length] ?? ''}`.slice(0, 50) + index;
  const target = `public.${id(name)}`;
  const columns: Column[] = [];
  const notNull = new Set<string>();
  for (const column of sketch.columns) {
    const called = names[column.name % names.length] ?? 'x';
    if (columns.some((other) => other.name === called)) continue;
    // In a mapping's path these characters have a meaning.
    const isMasked = column.isMasked && !/[.*\\]/.test(called);
    const [type, draw] = entryOf(isMasked ? secretTypes : types, column.type);
    if (column.isNotNull && !isMasked) notNull.add(called);
    columns.push({ name: called, type, draw, isMasked });
  }
  const isIdentity = sketch.key === 'identity' && sketch.shape !== 'partitioned';
  const key = sketch.key === 'several' ? ['id', 'id2'] : ['id'];
  const idType = isIdentity ? 'int generated by default as identity' : 'int not null';
  const defined = [
    ...columns.map((one) => `${id(one.name)} ${one.type}${notNull.has(one.name) ? ' not null' : ''}`),
    `id ${idType}`,
    'id2 text not null default $$a,b$$',
    ...(sketch.shape === 'tree' ? ['parent int'] : []),
    ...computedColumn(sketch.computed, version),
  ];
  const isUnlogged = sketch.shape === 'unlogged' ? 'unlogged ' : '';
  const partitioned = sketch.shape === 'partitioned' ? ' partition by list (id)' : '';
  const constraint =
    sketch.key === 'none'
      ? []
      : [
          `alter table ${target} add primary key (${key.join(', ')})${sketch.key === 'deferred' ? ' deferrable initially deferred' : ''}`,
        ];
  const below = belowOf(sketch.shape, name);
  const definition = [
    `create ${isUnlogged}table ${target} (gone int, ${defined.join(', ')})${partitioned}`,
    ...constraint,
    `alter table ${target} drop column gone`,
    ...(sketch.shape === 'partitioned'
      ? [
          `create table ${below[0]} partition of ${target} for values in (1, 2, 3)`,
          `create table ${below[1]} (gone int, ${[...defined].reverse().join(', ')})`,
          `alter table ${below[1]} drop column gone`,
          `alter table ${target} attach partition ${below[1]} for values in (4, 5)`,
          `create table ${below[2]} partition of ${target} default`,
        ]
      : []),
    ...(sketch.shape === 'inherited' ? [`create table ${below[0]} (more int) inherits (${target})`] : []),
    ...(sketch.shape === 'tree' && sketch.key === 'one'
      ? [
          `alter table ${target} add foreign key (parent) references ${target} on update cascade on delete cascade deferrable initially deferred`,
        ]
      : []),
    ...(sketch.own === 'before'
      ? [`create trigger own before insert or update or delete on ${target} for each row execute function shop_same()`]
      : []),
    ...(sketch.own === 'after'
      ? [
          `create trigger own after insert or update or delete on ${target} for each row execute function shop_nothing()`,
        ]
      : []),
    ...(sketch.own === 'first'
      ? [
          `create trigger "a own" after insert or update on ${target} for each statement execute function shop_nothing()`,
        ]
      : []),
    ...(sketch.security === 'none'
      ? []
      : [
          `alter table ${target} enable row level security`,
          `create policy some on ${target} using (id <> 3) with check (id < 100)`,
          ...(sketch.security === 'forced' ? [`alter table ${target} force row level security`] : []),
        ]),
  ];
  const mask = columns.flatMap((one) => (one.isMasked ? [one.name] : []));
  const plain = columns.find((one) => !one.isMasked && !/[.*\\]/.test(one.name))?.name;
  return {
    name,
    target,
    columns,
    key,
    hasIdentity: isIdentity,
    below,
    definition,
    mapping: {
      entity: `entity ${index}`,
      ...(sketch.key === 'none' ? { id: ['id'] } : {}),
      ...(mask.length === 0 ? {} : { mask }),
      ...(sketch.ignores && plain !== undefined ? { ignore: [plain] } : {}),
    },
  };
}

function belowOf(shape: string, name: string): string[] {
  if (shape === 'partitioned') return ['one', 'two', 'rest'].map((part) => `public.${id(`${name} ${part}`)}`);
  return shape === 'inherited' ? [`public.${id(`${name} child`)}`] : [];
}

function computedColumn(kind: string, version: number): string[] {
  if (kind === 'none') return [];
  if (kind === 'stored' || version < 18) return ['computed_by_id int generated always as (id * 2) stored'];
  return [`computed_by_id int generated always as (${kind === 'virtual' ? 'id * 2' : '10 / (id - 2)'}) virtual`];
}

function entryOf(list: Readonly<Record<string, Draw>>, at: number): [string, Draw] {
  const entries = Object.entries(list);
  return entries[at % entries.length] ?? ['text', () => "''"];
}

const settings = [
  ...['', '', '', ''],
  'set local session_replication_role = replica',
  `set local role ${applicationRole}`,
  `set local role ${applicationRole}`,
  'set constraints all deferred',
  `set local lock_timeout = '5s'`,
  `set local search_path = ''`,
  'set local row_security = off',
  `set local plpgsql.extra_errors = 'all'`,
  'set local standard_conforming_strings = off',
  `select set_config('annals.actor', repeat('x', 50000), true), set_config('annals.context', '{"ip":', true)`,
  `select set_config('annals.who', repeat('{', 100000), true), pg_logical_emit_message(true, 'annals.who', '{"actor":')`,
  'set local jit_above_cost = 0',
  'set local enable_nestloop = off',
];

function transactionOf(
  { begin, setting, statements, end }: Sketch<typeof transaction>,
  tables: readonly Table[],
): Statement[] {
  const written = statements.flatMap(({ kind, table: at, seed, isSafe }) => {
    const chosen = tables[at % tables.length];
    if (chosen === undefined) return [];
    const text = statementOf(chosen, tables, kinds[kind % kinds.length] ?? 'insert', new Random(seed));
    return [{ text, isSafe: begin !== '' && isSafe }];
  });
  if (begin === '') return written;
  const around = (text: string) => (text === '' ? [] : [{ text, isSafe: false }]);
  return [...around(begin), ...around(settings[setting % settings.length] ?? ''), ...written, ...around(end)];
}

const kinds = [
  ...[
    'insert',
    'insert',
    'insert',
    'insert',
    'update',
    'update',
    'update',
    'delete',
    'on conflict',
    'merge',
    'move',
    'keys',
    'copy',
    'bulk',
  ],
  ...['truncate', 'truncate', 'truncate all', 'divide', 'alter', 'detach', 'actor'],
] as const;

function statementOf(of: Table, all: readonly Table[], kind: (typeof kinds)[number], random: Random): string {
  const { columns, target } = of;
  const key = String(1 + random.below(6));
  // An own key now and then lets statements fail on their own.
  const where = `where id ${random.pick(['=', '<', '>=', '<>'])} ${key}`;
  const written = random.below(3) === 0 ? columns.slice(0, random.below(columns.length + 1)) : columns;
  const listed = (withId: boolean) => [...(withId ? ['id'] : []), ...written.map(({ name }) => id(name))].join(', ');
  const row = (value: string) => [value, ...written.map(({ draw }) => draw(random))].join(', ');
  const table = random.below(4) === 0 ? random.pick([target, ...of.below]) : target;
  const changed =
    written.length === 0 ? 'id2 = id2' : written.map(({ name, draw }) => `${id(name)} = ${draw(random)}`).join(', ');
  const insert = `insert into ${table} (${listed(true)}) values (${row(key)})`;
  switch (kind) {
    case 'insert':
      return random.below(3) === 0 ? `${insert}, (${row('7')}), (${row('8')})` : insert;
    case 'update':
      return `update ${random.below(3) === 0 ? 'only ' : ''}${table} set ${changed} ${where}`;
    case 'delete':
      return `delete from ${table} ${where}`;
    case 'on conflict':
      return `${insert} on conflict ${random.pick(['do nothing', `(id) do update set ${changed}`])}`;
    case 'merge':
      return `merge into ${table} as q using (values (${key}), (5)) as s (k) on q.id = s.k when matched and s.k = 5 then delete
        when matched then update set ${changed} when not matched then insert (${listed(true)}) values (${row('s.k')})`;
    case 'move':
      return `with moved as (delete from ${table} ${where} returning *)
        insert into ${target} (${listed(true)}) select id + ${random.below(3)}${written.map(({ name }) => `, moved.${id(name)}`).join('')} from moved`;
    case 'keys':
      return `update ${table} set id = id + ${random.below(3)}, id2 = id2 || '\\,' ${where}`;
    case 'copy':
      return `copy ${table} (id) from program 'printf "11\\n12\\n"'`;
    case 'bulk':
      return `insert into ${table} (${listed(true)}) select ${row('20 + n')} from generate_series(1, ${random.pick(['3', '40'])}) as n`;
    case 'truncate':
      return `truncate ${random.below(3) === 0 ? 'only ' : ''}${table}${random.below(2) === 0 ? ' cascade' : ''}`;
    case 'truncate all':
      return `truncate ${all.map((one) => one.target).join(', ')} restart identity`;
    case 'divide':
      return `update ${table} set id = id / (id - ${key})`;
    case 'alter':
      return random.pick([
        `alter table ${target} add added text default 'x'`,
        `alter table ${target} drop column if exists added`,
        `alter table ${target} alter id2 type varchar(20)`,
      ]);
    case 'detach': {
      const part = of.below[1];
      if (part === undefined) return insert;
      return random.pick([
        `alter table ${target} detach partition ${part}`,
        `alter table ${target} attach partition ${part} for values in (4, 5)`,
      ]);
    }
    case 'actor': {
      const who = random.pick([`'{"actor": "Ada", "actorId": "u-1"}'`, `'{"actor": "\\ud800"}'`, `'[1'`]);
      return random.pick([
        `select set_config('annals.actor', 'Ada', true)`,
        `select set_config('annals.who', ${who}, true)`,
        `select from pg_logical_emit_message(true, 'annals.who', ${who})`,
      ]);
    }
  }
}
