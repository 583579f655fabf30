import { type PathPattern, parsePathPattern } from '../../core/path-pattern.ts';
import { tenantPattern } from '../../postgres/tenants/tenants.ts';
import { faultOfCorrelation, faultOfName } from '../member-faults.ts';
import {
  type ColumnOrValue,
  columnsOfWho,
  type FormerColumns,
  type Mapping,
  namesOf,
  nameToday,
  noFormer,
  patternToday,
  readFormer,
  schemaOf,
  type TableMapping,
  type TenantRule,
  underAllNames,
  type ValueRules,
  type WhoColumns,
  type WhoPart,
} from './mapping.ts';
import type { MappingFile, TableFile } from './mapping-schema.ts';

/** A fault of a mapping. `path`: its keys, empty for the file as a whole. */
export interface MappingFault {
  readonly path: readonly string[];
  readonly message: string;
}

/** The mapping of a file that matches the schema, with the faults of its content. */
export function mappingOfFile(file: MappingFile): { mapping: Mapping; faults: readonly MappingFault[] } {
  const reader = new Reader(file);
  return { mapping: reader.mapping(), faults: reader.faults };
}

/**
 * The mapping of a text that `readMapping` has validated, for a thread. Avoids loading the schema checker's 700 files.
 */
export function mappingOfCheckedText(text: string): Mapping {
  return mappingOfFile(parsedMapping(text)).mapping;
}

/** The file as parsed by JSON.parse. */
export function parsedMapping(text: string): MappingFile {
  return JSON.parse(text.replace(/^\uFEFF/, ''));
}

/** Reads a file that matches the schema, and collects the faults of its content. */
class Reader {
  readonly faults: MappingFault[] = [];
  readonly #file: MappingFile;

  constructor(file: MappingFile) {
    this.#file = file;
  }

  mapping(): Mapping {
    const { tenants = {}, people, sources, tables = {}, entities = {} } = this.#file;
    for (const [value, tenant] of Object.entries(tenants)) this.#checkTenant(['tenants', value], tenant);
    const rules = new Map(
      Object.entries(entities).map(([entity, { ignore, mask }]): [string, ValueRules] => [
        entity,
        {
          ignore: this.#patterns(['entities', entity, 'ignore'], ignore),
          mask: this.#patterns(['entities', entity, 'mask'], mask),
        },
      ]),
    );
    const tenant = this.#tenantRule();
    const mapping: Mapping = {
      tenant,
      tenants: new Map(Object.entries(tenants)),
      people,
      sources: sources === undefined ? undefined : new Set(sources),
      tables: new Map(
        Object.entries(tables).map(([name, table]) => [
          name,
          this.#table(name, table, tenant, rules.get(table.entity)),
        ]),
      ),
      entities: rules,
    };
    this.#checkSharedEntities([...mapping.tables.values()], tenant);
    const hasNames = [...mapping.tables.values()].some(({ entity, name }) => entity === people && name !== undefined);
    if (people !== undefined && !hasNames) this.#fault(['people'], 'must be the entity of a table that has a "name"');
    return mapping;
  }

  #tenantRule(): TenantRule | undefined {
    const { tenant, tenants } = this.#file;
    if (tenant === undefined) return undefined;
    if (tenant.column !== undefined) return { kind: 'column', column: tenant.column };
    if (tenant.schema !== undefined) return { kind: 'schema' };
    const named = tenants?.[tenant.value ?? ''] ?? tenant.value ?? '';
    this.#checkTenant(['tenant', 'value'], named);
    return { kind: 'value', tenant: named };
  }

  #checkTenant(path: string[], tenant: string): void {
    if (!tenantPattern.test(tenant))
      this.#fault(path, 'is no name of a tenant: lower-case letters and digits, a letter first');
  }

  #table(
    name: string,
    file: TableFile,
    tenant: TenantRule | undefined,
    ofEntity: ValueRules | undefined,
  ): TableMapping {
    const path = ['tables', name];
    if (!/^[^.]+\../s.test(name)) this.#fault(path, 'must be named with its schema or database: "public.orders"');
    for (const [index, column] of (file.id ?? []).entries()) {
      if (file.id?.indexOf(column) !== index) this.#fault([...path, 'id', String(index)], 'is there twice');
    }
    const former = this.#former([...path, 'former'], file.former);
    const today = (column: string) => nameToday(former, column);
    const masks = this.#patterns([...path, 'mask'], file.mask).map((pattern) => patternToday(pattern, former));
    const ignores = this.#patterns([...path, 'ignore'], file.ignore).map((pattern) => patternToday(pattern, former));
    const own: ValueRules = { ignore: ignores, mask: masks };
    const table: TableMapping = {
      table: name,
      entity: file.entity,
      id: file.id?.map(today),
      name: file.name && today(file.name),
      who: this.#who(path, file, today),
      transactionActor: this.#who(
        path,
        typeof file.transactionActor === 'string' ? { actor: file.transactionActor } : (file.transactionActor ?? {}),
        today,
      ),
      correlationId: this.#columnOrValue([...path, 'correlationId'], file.correlationId, today, faultOfCorrelation),
      schemaVersion:
        file.schemaVersion?.column === undefined ? file.schemaVersion : { column: today(file.schemaVersion.column) },
      related: (file.related ?? []).map(({ entity, id }) => ({ entity, id: id.map(today) })),
      rules: {
        ignore: underAllNames([...own.ignore, ...(ofEntity?.ignore ?? [])], former),
        mask: underAllNames([...masks, ...(ofEntity?.mask ?? [])], former),
      },
      own,
      former,
      json: new Set((file.json ?? []).flatMap((column) => namesOf(former, column))),
      context: new Map(Object.entries(file.context ?? {}).map(([member, column]) => [member, today(column)])),
      truncate: file.truncate ?? 'deletes',
      snapshot: file.snapshot ?? true,
    };
    const open = openColumns(table, tenant);
    for (const pattern of masks) this.#checkMask([...path, 'mask', String(masks.indexOf(pattern))], pattern, open);
    for (const [index, pattern] of (ofEntity?.mask ?? []).entries()) {
      this.#checkMask(['entities', file.entity, 'mask', String(index)], pattern, open, ` of ${name}`);
    }
    return table;
  }

  #who(
    path: readonly string[],
    { actor, actorId, onBehalfOf }: WhoFile,
    today: (column: string) => string,
  ): WhoColumns {
    const parts = { actor, actorId, 'onBehalfOf.name': onBehalfOf?.name, 'onBehalfOf.id': onBehalfOf?.id };
    const who = new Map<WhoPart, ColumnOrValue>();
    for (const part of ['actor', 'actorId', 'onBehalfOf.name', 'onBehalfOf.id'] as const) {
      const source = this.#columnOrValue([...path, ...part.split('.')], parts[part], today, faultOfName);
      if (source !== undefined) who.set(part, source);
    }
    return who;
  }

  #columnOrValue(
    path: readonly string[],
    source: string | { value: string } | undefined,
    today: (column: string) => string,
    faultOf: (text: string) => string | undefined,
  ): ColumnOrValue | undefined {
    if (typeof source === 'string') return { column: today(source) };
    const fault = source && faultOf(source.value);
    if (fault !== undefined) this.#fault([...path, 'value'], fault);
    return source;
  }

  #checkMask(path: string[], { keys: [first] }: PathPattern, open: ReadonlyMap<string, string>, where = ''): void {
    for (const [column, use] of open) {
      if (first !== null && first !== column) continue;
      this.#fault(path, `cannot mask the column ${column}${where}: entries show it as ${use}`);
    }
  }

  /** A truncate or a snapshot of one table would delete the documents of another table with the same entity. */
  #checkSharedEntities(tables: readonly TableMapping[], tenant: TenantRule | undefined): void {
    const owner = new Map<string, string>();
    for (const table of tables) {
      if (table.truncate === 'ignore' && !table.snapshot) continue;
      const schema = tenant?.kind === 'schema' ? schemaOf(table.table) : '';
      const key = JSON.stringify([schema, table.entity]);
      const existing = owner.get(key);
      owner.set(key, existing ?? table.table);
      if (existing === undefined) continue;
      this.#fault(
        ['tables', table.table, 'entity'],
        `is the entity of ${existing} too: give one of them "truncate": "ignore" and "snapshot": false`,
      );
    }
  }

  #former(path: string[], columns: TableFile['former'] = {}): FormerColumns {
    const former = readFormer(columns);
    if (typeof former !== 'string') return former;
    this.#fault([...path, former], 'is a former name of itself');
    return noFormer;
  }

  #patterns(path: string[], texts: readonly string[] | undefined): PathPattern[] {
    return (texts ?? []).flatMap((text, index) => {
      const pattern = parsePathPattern(text);
      if (typeof pattern !== 'string') return [pattern];
      this.#fault([...path, String(index)], pattern);
      return [];
    });
  }

  #fault(path: readonly string[], message: string): void {
    this.faults.push({ path, message });
  }
}

/** The members of a table, or of its `transactionActor`, that say who made a change. */
type WhoFile = Pick<TableFile, 'actor' | 'actorId' | 'onBehalfOf'>;

const uses: Readonly<Record<WhoPart, string>> = {
  actor: 'the actor',
  actorId: "the actor's id",
  'onBehalfOf.name': 'the person for whom the actor acts',
  'onBehalfOf.id': 'the id of the person for whom the actor acts',
};

/** The columns that entries show outside of `paths`, with their use. The primary key is not known here. */
function openColumns(table: TableMapping, tenant: TenantRule | undefined): Map<string, string> {
  const columns = new Map<string, string>();
  const add = (column: string | undefined, use: string) => {
    if (column !== undefined) columns.set(column, use);
  };
  for (const { id } of table.related) for (const column of id) add(column, 'a related id');
  add(table.correlationId?.column, 'the correlation id');
  for (const who of [table.who, table.transactionActor]) {
    for (const [part, column] of columnsOfWho(who)) add(column, uses[part]);
  }
  add(table.name, 'the name');
  if (tenant?.kind === 'column') add(tenant.column, 'the tenant');
  for (const column of table.id ?? []) add(column, 'the id');
  return columns;
}
