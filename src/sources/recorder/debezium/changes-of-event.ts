import { elementsOf, entriesOf, kindOf, memberOf, stringOf } from '../../../core/json/members.ts';
import type { JsonNode } from '../../../core/json/tape.ts';
import type { RelatedItem } from '../../../recording/change.ts';
import { changesOfRow, documentOfRow, type MappingDefaults } from '../../../recording/mapping/changes-of-row.ts';
import type { Mapping, TableMapping } from '../../../recording/mapping/mapping.ts';
import { rejectedRowText } from '../../../recording/mapping/rejected-row.ts';
import {
  type ChangedValue,
  idOf,
  type MappedChange,
  type MappedDocument,
  type Row,
  type RowChange,
  RowRejection,
  tenantOf,
} from '../../../recording/mapping/row-change.ts';
import { ColumnRejection, columnValue, isUnavailable } from './column-value.ts';
import { idOfKey, mongodbSides } from './mongodb-row.ts';
import { type DebeziumEvent, type EventHeaders, identityOfEvent, keyColumnsOf, type ReadEvent } from './read-event.ts';

/** The result of mapping an event. */
export type EventResult =
  | {
      readonly kind: 'changes';
      readonly changes: readonly MappedChange[];
      /** The row's change as masked text, stored if it is rejected. */
      readonly content: () => string;
    }
  /** A row of a snapshot, to be compared with the history (`changeOfSnapshot`). */
  | {
      readonly kind: 'snapshot';
      readonly document: Extract<MappedDocument, { kind: 'document' }>;
      readonly content: () => string;
    }
  /** Deletes all documents of the entity. `tenant`: undefined if a column of the rows would name it. */
  | {
      readonly kind: 'truncate';
      readonly table: TableMapping;
      readonly tenant: string | undefined;
      readonly at: number;
      readonly identity: Buffer;
    }
  | { readonly kind: 'ignored' }
  | { readonly kind: 'rejected'; readonly reason: string };

/**
 * Maps a Debezium event (recording.md 4). `headers`: those of its request.
 *
 * @example
 * const read = readDebeziumEvent(parseJson(line));
 * if (read !== undefined) changesOfEvent(mapping, read, {}, { actor: 'the client' });
 */
export function changesOfEvent(
  mapping: Mapping | undefined,
  read: ReadEvent,
  headers: EventHeaders,
  defaults: MappingDefaults,
): EventResult {
  if (read.kind !== 'event') return read;
  if (mapping === undefined) {
    return {
      kind: 'rejected',
      reason: 'is an event of Debezium, and this recorder has no mapping: set ANNALS_RECORDER_MAPPING',
    };
  }
  const { event } = read;
  const name = event.source.get('name');
  if (mapping.sources !== undefined && (name === undefined || !mapping.sources.has(name))) {
    return { kind: 'rejected', reason: 'comes from a source that "sources" of the mapping does not name' };
  }
  const table = mapping.tables.get(tableOf(event));
  if (table === undefined) return { kind: 'ignored' };
  try {
    return new EventMapper(mapping, table, event, headers, defaults).result();
  } catch (error) {
    if (error instanceof ColumnRejection || error instanceof RowRejection)
      return { kind: 'rejected', reason: error.message };
    throw error;
  }
}

class EventMapper {
  readonly #mapping: Mapping;
  readonly #table: TableMapping;
  readonly #event: DebeziumEvent;
  readonly #headers: EventHeaders;
  readonly #defaults: MappingDefaults;
  readonly #isMongodb: boolean;
  readonly #idColumns: readonly string[] | undefined;

  constructor(
    mapping: Mapping,
    table: TableMapping,
    event: DebeziumEvent,
    headers: EventHeaders,
    defaults: MappingDefaults,
  ) {
    this.#mapping = mapping;
    this.#table = table;
    this.#event = event;
    this.#headers = headers;
    this.#defaults = defaults;
    this.#isMongodb = event.source.has('collection');
    this.#idColumns = table.id ?? (this.#isMongodb ? ['_id'] : keyColumnsOf(headers.key));
  }

  result(): EventResult {
    const { op } = this.#event;
    const at = timeOf(this.#event);
    if (op === 't') return this.#truncate(at);
    const { before, after, values } = this.#sides();
    const identity = identityOfEvent(this.#event, this.#id(after ?? before));
    const type = op === 'd' ? 'delete' : op === 'u' ? 'update' : 'create';
    const row: RowChange = {
      table: this.#table.table,
      type,
      before,
      isBeforeWhole: this.#isMongodb && this.#event.before !== undefined,
      after,
      values,
      at,
      identity,
      primaryKey: this.#idColumns,
    };
    if (op === 'r') return this.#snapshot({ ...row, before: undefined });
    const changes = changesOfRow(this.#mapping, row, this.#defaults);
    const content = () => rejectedRowText(this.#table, row);
    return { kind: 'changes', changes: changes.map((mapped) => this.#withOtherKey(mapped)), content };
  }

  #snapshot(row: RowChange): EventResult {
    const { after } = row;
    if (after === undefined) throw new ColumnRejection('has no "after"');
    const mapped = documentOfRow(this.#mapping, { ...row, after }, this.#defaults.tenant);
    if (mapped === undefined) return { kind: 'ignored' };
    if (mapped.kind === 'rejected') return { kind: 'changes', changes: [mapped], content: () => mapped.content };
    return { kind: 'snapshot', document: mapped, content: () => rejectedRowText(this.#table, row) };
  }

  #truncate(at: number): EventResult {
    const table = this.#table;
    if (table.truncate === 'ignore') return { kind: 'ignored' };
    const tenant = this.#mapping.tenant?.kind === 'column' ? undefined : tenantOf(this.#mapping, table, new Map());
    return { kind: 'truncate', table, tenant, at, identity: identityOfEvent(this.#event, undefined) };
  }

  #sides(): { before: Row | undefined; after: Row | undefined; values?: readonly ChangedValue[] | undefined } {
    if (this.#isMongodb) return mongodbSides(this.#event, this.#headers.key && idOfKey(this.#headers.key));
    const schemas = columnSchemas(this.#event.schema, 'before');
    const before = this.#event.before && rowOf(this.#event.before, schemas);
    const after = this.#event.after && rowOf(this.#event.after, columnSchemas(this.#event.schema, 'after'));
    return { before: before && this.#withoutFillings(before, schemas), after };
  }

  /**
   * Only the columns of the id, if all others are null, empty or default: Debezium's form of a row of which the
   * database gave only the key.
   */
  #withoutFillings(before: Row, schemas: ReadonlyMap<string, JsonNode>): Row {
    const id = this.#idColumns;
    if (id === undefined) return before;
    const rest = [...before].filter(([column]) => !id.includes(column));
    const isFilling = ([column, value]: readonly [string, string | undefined]) =>
      value !== undefined &&
      (fillings.has(value) || zero.test(value) || value === defaultOf(column, schemas.get(column)));
    if (rest.length === 0 || !rest.every(isFilling)) return before;
    return new Map([...before].filter(([column]) => id.includes(column)));
  }

  #id(row: Row | undefined): string | undefined {
    try {
      return row === undefined || this.#idColumns === undefined ? undefined : idOf(row, this.#idColumns);
    } catch (error) {
      // The mapping rejects the row; its identity still distinguishes it.
      if (error instanceof RowRejection) return undefined;
      throw error;
    }
  }

  /** A changed key arrives as a delete and a create, each with the other key in a header: relates the two. */
  #withOtherKey(mapped: MappedChange): MappedChange {
    const { oldKey, newKey } = this.#headers;
    const otherKey = this.#event.op === 'd' ? newKey : this.#event.op === 'c' ? oldKey : undefined;
    if (mapped.kind !== 'change' || otherKey === undefined || this.#idColumns === undefined) return mapped;
    const row = rowOf(otherKey, new Map());
    if (!this.#idColumns.every((column) => row.has(column))) return mapped;
    const item: RelatedItem = { entity: this.#table.entity, entityId: idOf(row, this.#idColumns) };
    return { ...mapped, change: { ...mapped.change, related: [item, ...mapped.change.related] } };
  }
}

/** The empty values of a column that may not be null. */
const fillings: ReadonlySet<string> = new Set([
  'null',
  '""',
  'false',
  '[]',
  '{}',
  '"{}"',
  '"\\\\x"',
  '"1970-01-01"',
  '"1970-01-01T00:00:00"',
  '"1970-01-01T00:00:00Z"',
  '"00:00:00"',
  '"00:00:00Z"',
]);

const zero = /^"?-?0(?:\.0+)?"?$/;

/** The JSON text of a column's default, if its schema has one. */
function defaultOf(column: string, schema: JsonNode | undefined): string | undefined {
  const value = schema && memberOf(schema, 'default');
  return value && columnValue(column, value, schema);
}

/** With the schema, or else the database. */
function tableOf({ source }: DebeziumEvent): string {
  const outer = source.get('schema') || source.get('db') || '';
  return `${outer}.${source.get('table') ?? source.get('collection') ?? ''}`;
}

/** Members of `source` with the time, and their units per millisecond. */
const times: readonly [member: string, units: bigint][] = [
  ['tsus', 1_000n],
  ['tsms', 1n],
  ['tsns', 1_000_000n],
];

/**
 * The source's time in milliseconds since 1970: the first that Annals can record. Some samples of Debezium's MongoDB
 * connector have nanoseconds under another name.
 */
function timeOf({ source }: DebeziumEvent): number {
  for (const [member, units] of times) {
    const text = source.get(member);
    if (text === undefined || !/^\d{1,30}$/.test(text)) continue;
    const at = BigInt(text) / units;
    if (at < endOfTime) return Number(at);
  }
  throw new ColumnRejection('has no "ts_ms" in its "source" that is a time from 1970 to 2100');
}

/** 2101, in milliseconds. */
const endOfTime = BigInt(Date.UTC(2101, 0));

function rowOf(side: JsonNode, schemas: ReadonlyMap<string, JsonNode>): Map<string, string | undefined> {
  if (kindOf(side) !== 'object') throw new ColumnRejection('has a row that is no object');
  return new Map(
    entriesOf(side).map(([column, value]) => [
      column,
      isUnavailable(value) ? undefined : columnValue(column, value, schemas.get(column)),
    ]),
  );
}

/** The schemas of the columns in `before` or `after`. */
function columnSchemas(schema: JsonNode | undefined, side: string): ReadonlyMap<string, JsonNode> {
  const row = fieldsOf(schema).get(side);
  return row === undefined ? new Map() : fieldsOf(row);
}

function fieldsOf(struct: JsonNode | undefined): Map<string, JsonNode> {
  const fields = struct && memberOf(struct, 'fields');
  if (fields === undefined || kindOf(fields) !== 'array') return new Map();
  return new Map(
    elementsOf(fields).flatMap((field): [string, JsonNode][] => {
      const name = kindOf(field) === 'object' ? stringOf(memberOf(field, 'field')) : undefined;
      return name === undefined ? [] : [[name, field]];
    }),
  );
}
