import { patternOfKey } from '../../core/path-pattern.ts';
import { plainTable } from '../../postgres/source/source-catalogue.ts';
import type { MappingFile, TableFile } from '../../recording/mapping/mapping-schema.ts';
import { snakeCase, soundsSecret } from '../../recording/mapping/secret-names.ts';
import type { ApplicationColumn, ApplicationTable } from './application-tables.ts';
import {
  EntityNames,
  guessLeftOut,
  guessName,
  isJson,
  isSecret,
  isTouched,
  namesWriter,
  soundsLikePeople,
  soundsLikeTenant,
} from './name-guesses.ts';

/** A draft mapping, with notes for its author. Tables and columns have their plain names. */
interface MappingDraft {
  readonly file: MappingFile;
  /** Excluded tables by reason. */
  readonly leftOut: ReadonlyMap<string, readonly string[]>;
  readonly masked: readonly string[];
  readonly ignored: readonly string[];
  readonly named: readonly string[];
  /** Columns that seem to say who wrote a row last. Only the author knows whether every change sets them. */
  readonly writers: readonly string[];
  /** Tables that seem to hold the people whose ids such columns contain. */
  readonly people: readonly PeopleTable[];
  /** Relations suggested by names, without a foreign key: `public.order.customer_id → customer`. */
  readonly relatedByName: readonly string[];
  /** Foreign keys that cannot be `related`, with the reason. */
  readonly unrelated: readonly string[];
  /** JSON recorded as is. */
  readonly json: readonly string[];
  /** A column of many tables that seems to name the customer, with the number of mapped tables. */
  readonly tenantColumn: { readonly column: string; readonly tables: number } | undefined;
}

interface PeopleTable {
  readonly table: string;
  readonly entity: string;
  /** Whether the draft knows the column with a person's name. */
  readonly hasName: boolean;
}

interface MappedTable {
  readonly table: ApplicationTable;
  readonly name: string;
  readonly entity: string;
  readonly id: readonly string[];
}

/** Limits of the mapping's schema. */
const maxRelated = 100;

/** Drafts the mapping of an application's tables for one tenant. */
export function draftMapping(tables: readonly ApplicationTable[], tenant: string): MappingDraft {
  const leftOut = new Map<string, string[]>();
  const mapped: MappedTable[] = [];
  const entities = new EntityNames();
  for (const table of tables) {
    const name = plainTable(table);
    const reason = mapped.some((existing) => existing.name === name)
      ? 'a mapping cannot tell it from another table of this name'
      : reasonAgainst(table);
    if (reason === undefined) mapped.push({ table, name, entity: entities.assign(table), id: idOf(table) ?? [] });
    else leftOut.getOrInsertComputed(reason, () => []).push(name);
  }
  const notes = { masked: [], ignored: [], named: [], writers: [], relatedByName: [], unrelated: [], json: [] };
  const references = new References(mapped, notes);
  const files = mapped.map((entry): [string, TableFile] => [entry.name, draftTable(entry, references, notes)]);
  const people = peopleOf(mapped, new Map(files));
  const named = people.length === 1 && people[0]?.hasName ? people[0].entity : undefined;
  return {
    file: {
      version: 1,
      tenant: { value: tenant },
      ...(named !== undefined && { people: named }),
      tables: Object.fromEntries(files),
    },
    leftOut,
    ...notes,
    people,
    tenantColumn: tenantColumnOf(mapped),
  };
}

type Notes = {
  [Part in 'masked' | 'ignored' | 'named' | 'writers' | 'relatedByName' | 'unrelated' | 'json']: string[];
};

/** Why a table cannot or should not be recorded. */
function reasonAgainst(table: ApplicationTable): string | undefined {
  if (table.extension !== null) return `of the extension ${table.extension}`;
  const guess = guessLeftOut(table);
  if (guess !== undefined) return guess;
  if (table.isUnlogged) return 'unlogged: capture cannot read it';
  if (idOf(table) === undefined) {
    if (keysOf(table).length > 0) return 'its key seems to be a secret, which a mask cannot cover';
    return table.isPartitioned
      ? 'partitioned and without a primary key: capture would break its updates'
      : 'no key: neither a primary key nor a unique index, over columns that are never null and not generated';
  }
  return /^[^.]+\../s.test(plainTable(table)) ? undefined : 'a mapping cannot have its name';
}

function keysOf({ keys, isPartitioned }: ApplicationTable): (readonly string[])[] {
  return keys.filter(({ isPrimary }) => isPrimary || !isPartitioned).map(({ columns }) => columns);
}

function idOf(table: ApplicationTable): readonly string[] | undefined {
  return keysOf(table).find((columns) => !columns.some(soundsSecret));
}

function draftTable({ table, name, entity, id }: MappedTable, references: References, notes: Notes): TableFile {
  const of = ({ name: column }: ApplicationColumn) => `${name}.${column}`;
  const recorded = table.columns.filter(({ isGenerated }) => !isGenerated);
  const related = references.of({ table, name, entity, id });
  const shown = new Set([...id, ...related.flatMap((entry) => entry.id)]);
  const free = recorded.filter((column) => !shown.has(column.name));
  const masked = free.filter((column) => isSecret(column, table));
  const ignored = free.filter((column) => isTouched(column));
  const nameColumn = guessName(
    entity,
    free.filter((column) => !masked.includes(column)),
  );
  notes.masked.push(...masked.map(of));
  notes.ignored.push(...ignored.map(of));
  notes.writers.push(...recorded.filter((column) => namesWriter(column)).map(of));
  notes.json.push(...free.filter((column) => isJson(column) && !masked.includes(column)).map(of));
  if (nameColumn !== undefined) notes.named.push(`${name}.${nameColumn}`);
  const patterns = (columns: readonly ApplicationColumn[]) => columns.map((column) => patternOfKey(column.name));
  return {
    entity,
    id: [...id],
    ...(nameColumn === undefined ? {} : { name: nameColumn }),
    ...(related.length === 0 ? {} : { related }),
    ...(masked.length === 0 ? {} : { mask: patterns(masked) }),
    ...(ignored.length === 0 ? {} : { ignore: patterns(ignored) }),
  };
}

type RelatedFile = NonNullable<TableFile['related']>[number];

/** Finds the documents that a table's rows point to. */
class References {
  readonly #byOid: ReadonlyMap<string, MappedTable>;
  readonly #byEntity: ReadonlyMap<string, MappedTable>;
  readonly #notes: Notes;

  constructor(mapped: readonly MappedTable[], notes: Notes) {
    this.#byOid = new Map(mapped.map((entry) => [entry.table.oid, entry]));
    this.#byEntity = new Map(mapped.map((entry) => [entry.entity, entry]));
    this.#notes = notes;
  }

  of({ table, name, id }: MappedTable): RelatedFile[] {
    const related: RelatedFile[] = [];
    const add = (entity: string, columns: readonly string[]): void => {
      const isThere = related.some((entry) => entry.entity === entity && String(entry.id) === String(columns));
      if (!isThere && related.length < maxRelated) related.push({ entity, id: [...columns] });
    };
    const unfit = new Set(
      table.columns.flatMap((column) => (column.isGenerated || soundsSecret(column.name) ? [column.name] : [])),
    );
    for (const { table: oid, columns, references } of table.foreignKeys) {
      const target = this.#byOid.get(oid);
      // Tables that are not recorded have no documents.
      if (target === undefined) continue;
      const own = target.id.map((column) => columns[references.indexOf(column)]);
      if (!own.every((column) => column !== undefined)) {
        this.#notes.unrelated.push(`${name} (${columns.join(', ')}): ${target.entity} has another id`);
      } else if (own.some((column) => unfit.has(column))) {
        this.#notes.unrelated.push(`${name} (${columns.join(', ')}): the log cannot show it`);
      } else add(target.entity, own);
    }
    const linked = new Set(table.foreignKeys.flatMap(({ columns }) => columns));
    for (const column of table.columns) {
      if (linked.has(column.name) || unfit.has(column.name) || String(id) === column.name) continue;
      const target = this.#targetByName(column);
      if (target === undefined) continue;
      add(target, [column.name]);
      this.#notes.relatedByName.push(`${name}.${column.name} → ${target}`);
    }
    return related;
  }

  /** `customer_id` and `customerId`, where `customer` has an id of one column with this type. */
  #targetByName({ name, type }: ApplicationColumn): string | undefined {
    const [, entity] = /^(.+)_(?:id|uuid)$/.exec(snakeCase(name)) ?? [];
    const target = entity === undefined ? undefined : this.#byEntity.get(entity.replaceAll('_', '-'));
    const [idColumn, ...more] = target?.id ?? [];
    if (target === undefined || more.length > 0) return undefined;
    return target.table.columns.find((column) => column.name === idColumn)?.type === type ? target.entity : undefined;
  }
}

/** Those that columns of writers reference, otherwise those with the name of such a table. */
function peopleOf(mapped: readonly MappedTable[], files: ReadonlyMap<string, TableFile>): PeopleTable[] {
  const referenced = new Set(
    mapped.flatMap(({ table }) =>
      table.foreignKeys.flatMap(({ table: oid, columns }) =>
        columns.some((name) => namesWriter({ name })) ? [oid] : [],
      ),
    ),
  );
  const ofWriters = mapped.filter(({ table, id }) => referenced.has(table.oid) && id.length === 1);
  const byName = mapped.filter(({ table, id }) => soundsLikePeople(table.name) && id.length === 1);
  return (ofWriters.length > 0 ? ofWriters : byName).map(({ name, entity }) => ({
    table: name,
    entity,
    hasName: files.get(name)?.name !== undefined,
  }));
}

function tenantColumnOf(mapped: readonly MappedTable[]): MappingDraft['tenantColumn'] {
  const counts = new Map<string, number>();
  for (const { table } of mapped) {
    for (const { name, isGenerated } of table.columns) {
      if (!isGenerated && soundsLikeTenant(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  const [top] = [...counts].sort(([, a], [, b]) => b - a);
  return top !== undefined && top[1] * 2 > mapped.length ? { column: top[0], tables: top[1] } : undefined;
}

/** The file as readable JSON for further editing: one member per line. */
export function textOfMapping(file: MappingFile): string {
  return textOf(file, 0, 3);
}

function textOf(value: unknown, depth: number, levels: number): string {
  if (Array.isArray(value)) return `[${value.map((item) => textOf(item, depth, depth)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => {
    // A short object stays on one line.
    const isFlat = key === 'tenant';
    return `${JSON.stringify(key)}: ${textOf(member, depth + 1, isFlat ? 0 : levels)}`;
  });
  if (members.length === 0) return '{}';
  if (depth >= levels) return `{ ${members.join(', ')} }`;
  const indent = '  '.repeat(depth + 1);
  return `{\n${indent}${members.join(`,\n${indent}`)}\n${indent.slice(2)}}`;
}

/** Lines about what was guessed and excluded. */
export function linesOfDraft(draft: MappingDraft, { tenantIsGuessed }: { tenantIsGuessed: boolean }): string[] {
  const { file, leftOut, masked, ignored, named, writers, people, relatedByName, unrelated, json, tenantColumn } =
    draft;
  const count = Object.keys(file.tables ?? {}).length;
  const all = count + [...leftOut.values()].flat().length;
  const tenant = file.tenant?.value ?? '';
  return [
    `annals: ${count} of ${all} tables are in the mapping. Most of it is guessed from names: read it before you use it.`,
    ...section('Tenant', [
      ...(tenantIsGuessed
        ? [`${tenant}: the name of the database. Write the tenant that the changes belong to (--tenant T)`]
        : []),
      ...(tenantColumn === undefined
        ? []
        : [
            `${tenantColumn.tables} of ${count} tables have ${tenantColumn.column}. If it names your customers, and each is a tenant: ` +
              `"tenant": {"column": ${JSON.stringify(tenantColumn.column)}}, with these tables alone`,
          ]),
    ]),
    ...section(
      'Left out',
      [...leftOut].map(([reason, tables]) => `${reason}: ${tables.join(', ')}`),
    ),
    ...section('Masked, because the name sounds like a secret', byColumn(masked)),
    ...section('JSON that is recorded as it is: mask what is secret in it', byColumn(json)),
    ...section('Ignored, because it only says when a row was touched', byColumn(ignored)),
    ...section('Names of documents', byColumn(named)),
    ...section('Says who wrote a row last: "actor" or "actorId", if every change sets it', byColumn(writers)),
    ...section(
      'People: a change with the id of its actor and no name gets the name of the document',
      linesOfPeople(people),
    ),
    ...section('Related by the name of a column, without a foreign key', relatedByName),
    ...section('Foreign keys that are not related', unrelated),
  ];
}

function linesOfPeople(people: readonly PeopleTable[]): string[] {
  const isClear = people.length === 1;
  return people.map(({ table, entity, hasName }) => {
    if (!hasName) return `${table}: to use it, give the table a "name" and write "people": ${JSON.stringify(entity)}`;
    return isClear ? table : `${table}: to use it, write "people": ${JSON.stringify(entity)}`;
  });
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`${title}:`, ...lines.map((line) => `  ${line}`)];
}

/** Columns as `table.column`, grouped by name: `updated_at of 3 tables`. */
function byColumn(columns: readonly string[]): string[] {
  const groups = Map.groupBy(columns, (column) => column.slice(column.lastIndexOf('.') + 1));
  return [...groups].map(([name, all]) => (all.length > 3 ? `${name} of ${all.length} tables` : all.join(', ')));
}
