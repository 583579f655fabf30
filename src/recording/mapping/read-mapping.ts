import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { tenantPattern } from '../../db/tenants.ts';
import { parseJson } from '../../json/parse.ts';
import {
  braceByte,
  bracketByte,
  cellAt,
  cellsOfNode,
  endCell,
  firstByte,
  firstChild,
  type JsonNode,
  JsonSyntaxError,
  nextChild,
} from '../../json/tape.ts';
import { decodedString } from '../../json/text.ts';
import {
  type Mapping,
  type SchemaVersionRule,
  schemaOf,
  type TableMapping,
  type TenantRule,
  type ValueRules,
} from './mapping.ts';
import { MappingFile, type TableFile } from './mapping-schema.ts';
import { type PathPattern, parsePathPattern } from './path-pattern.ts';

/** One thing that is wrong with a mapping. `path` has the keys that lead to it; it is empty for the file as a whole. */
export interface MappingFault {
  readonly path: readonly string[];
  readonly message: string;
}

/** All faults of a mapping together. */
export class MappingError extends Error {
  readonly faults: readonly MappingFault[];

  constructor(faults: readonly MappingFault[]) {
    super(
      faults.map(({ path, message }) => (path.length === 0 ? message : `${path.join(' → ')}: ${message}`)).join('\n'),
    );
    this.name = 'MappingError';
    this.faults = faults;
  }
}

const check = Compile(MappingFile);
const maxFaults = 50;

/**
 * Reads the text of a mapping. Throws a `MappingError` that names every fault with its place.
 *
 * @example
 * const mapping = readMapping(await readFile('mapping.json', 'utf8'));
 * mapping.tables.get('public.orders')?.entity; // 'order'
 */
export function readMapping(text: string): Mapping {
  const file = parsed(text);
  if (!check.Check(file)) throw new MappingError(schemaFaults(file));
  const reader = new Reader(file);
  const mapping = reader.mapping();
  if (reader.faults.length > 0) throw new MappingError(reader.faults.slice(0, maxFaults));
  return mapping;
}

function parsed(text: string): unknown {
  let node: JsonNode;
  try {
    node = parseJson(text.replace(/^\uFEFF/, ''), maxDepth);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new MappingError([{ path: [], message: `is no JSON: ${error.message}` }]);
  }
  const repeated = repeatedKey(node);
  // The first of two rules for one table would be lost without a word.
  if (repeated !== undefined)
    throw new MappingError([{ path: [], message: `has the key ${repeated} twice in one object` }]);
  return JSON.parse(text.replace(/^\uFEFF/, ''));
}

const maxDepth = 20;

/** A key that comes twice in its object. The parser links only the last of equal keys, so the others are linked nowhere. */
function repeatedKey({ tape, node }: JsonNode): string | undefined {
  const linked = new Set<number>();
  const open = [node];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    linked.add(value);
    const kind = firstByte(tape, value);
    if (kind !== braceByte && kind !== bracketByte) continue;
    for (let child = firstChild(tape, value); child !== -1; child = nextChild(tape, child)) {
      if (kind === braceByte) linked.add(child);
      open.push(kind === braceByte ? child + cellsOfNode : child);
    }
  }
  for (let place = node; cellAt(tape.cells, place + endCell) > 0; place += cellsOfNode) {
    if (!linked.has(place)) return decodedString(tape, place);
  }
  return undefined;
}

function schemaFaults(file: unknown): MappingFault[] {
  return allErrors(file)
    .filter(({ keyword }) => keyword !== 'additionalProperties')
    .slice(0, maxFaults)
    .map(({ instancePath, keyword, message, params }) => {
      const path = instancePath
        .split('/')
        .slice(1)
        .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
      if (keyword === 'boolean') return { path, message: 'is not a key that this object can have' };
      if (keyword === 'const' && 'allowedValue' in params)
        return { path, message: `must be ${JSON.stringify(params.allowedValue)}` };
      if (keyword === 'enum' && 'allowedValues' in params)
        return { path, message: `must be one of ${JSON.stringify(params.allowedValues)}` };
      return { path, message };
    });
}

/** TypeBox stops at 8 errors. Its limit is one for the whole process, so it is raised for this call alone. */
function allErrors(file: unknown) {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: maxFaults * 2 });
  try {
    return check.Errors(file);
  } finally {
    Settings.Set({ maxErrors });
  }
}

/** Reads a file whose shape is right, and notes what is wrong in its content. */
class Reader {
  readonly faults: MappingFault[] = [];
  readonly #file: MappingFile;

  constructor(file: MappingFile) {
    this.#file = file;
  }

  mapping(): Mapping {
    const { tenants = {}, sources, tables = {}, entities = {} } = this.#file;
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
    for (const [place, column] of (file.id ?? []).entries()) {
      if (file.id?.indexOf(column) !== place) this.#fault([...path, 'id', String(place)], 'is there twice');
    }
    const masks = this.#patterns([...path, 'mask'], file.mask);
    const own: ValueRules = { ignore: this.#patterns([...path, 'ignore'], file.ignore), mask: masks };
    const table: TableMapping = {
      table: name,
      entity: file.entity,
      id: file.id,
      name: file.name,
      actor: file.actor,
      schemaVersion: schemaVersionRule(file.schemaVersion),
      related: file.related ?? [],
      rules: {
        ignore: [...own.ignore, ...(ofEntity?.ignore ?? [])],
        mask: [...masks, ...(ofEntity?.mask ?? [])],
      },
      own,
      json: new Set(file.json),
      context: new Map(Object.entries(file.context ?? {})),
      truncate: file.truncate ?? 'deletes',
      snapshot: file.snapshot ?? true,
    };
    const open = openColumns(table, tenant);
    for (const pattern of masks) this.#checkMask([...path, 'mask', String(masks.indexOf(pattern))], pattern, open);
    for (const [place, pattern] of (ofEntity?.mask ?? []).entries()) {
      this.#checkMask(['entities', file.entity, 'mask', String(place)], pattern, open, ` of ${name}`);
    }
    return table;
  }

  #checkMask(path: string[], { keys: [first] }: PathPattern, open: ReadonlyMap<string, string>, where = ''): void {
    for (const [column, use] of open) {
      if (first !== null && first !== column) continue;
      this.#fault(path, `cannot mask the column ${column}${where}: entries show it as ${use}`);
    }
  }

  /** A truncate or a snapshot of one table deletes the documents that it does not have, and those of the other are among them. */
  #checkSharedEntities(tables: readonly TableMapping[], tenant: TenantRule | undefined): void {
    const owner = new Map<string, string>();
    for (const table of tables) {
      if (table.truncate === 'ignore' && !table.snapshot) continue;
      const schema = tenant?.kind === 'schema' ? schemaOf(table.table) : '';
      const key = JSON.stringify([schema, table.entity]);
      const other = owner.get(key);
      owner.set(key, other ?? table.table);
      if (other === undefined) continue;
      this.#fault(
        ['tables', table.table, 'entity'],
        `is the entity of ${other} too: give one of them "truncate": "ignore" and "snapshot": false`,
      );
    }
  }

  #patterns(path: string[], texts: readonly string[] | undefined): PathPattern[] {
    return (texts ?? []).flatMap((text, place) => {
      const pattern = parsePathPattern(text);
      if (typeof pattern !== 'string') return [pattern];
      this.#fault([...path, String(place)], pattern);
      return [];
    });
  }

  #fault(path: readonly string[], message: string): void {
    this.faults.push({ path, message });
  }
}

function schemaVersionRule(file: TableFile['schemaVersion']): SchemaVersionRule | undefined {
  if (file?.column !== undefined) return { kind: 'column', column: file.column };
  return file?.value === undefined ? undefined : { kind: 'value', value: file.value };
}

/** The columns that entries show outside of `paths`, with what they are there. The primary key is not known here. */
function openColumns(table: TableMapping, tenant: TenantRule | undefined): Map<string, string> {
  const columns = new Map<string, string>();
  const add = (column: string | undefined, use: string) => {
    if (column !== undefined) columns.set(column, use);
  };
  for (const { id } of table.related) for (const column of id) add(column, 'a related id');
  add(table.actor, 'the actor');
  add(table.name, 'the name');
  if (tenant?.kind === 'column') add(tenant.column, 'the tenant');
  for (const column of table.id ?? []) add(column, 'the id');
  return columns;
}
