import { elementsOf, memberOf, membersOf, objectText, stringOf } from '../../core/json/members.ts';
import { parseJson, parseObject } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import {
  type Change,
  type ChangeType,
  contentOf,
  differenceOfChange,
  unknownActor,
  type Who,
  withDerivedCorrelation,
} from '../../recording/change.ts';
import { derivedUuid, identityOf } from '../../recording/identity.ts';
import { applyRules, compileRules, type Sides } from '../../recording/mapping/apply-rules.ts';
import { changesOfRow } from '../../recording/mapping/changes-of-row.ts';
import { operations } from '../../recording/mapping/import-line.ts';
import type { ColumnOrValue, Mapping, TableMapping, ValueRules, WhoColumns } from '../../recording/mapping/mapping.ts';
import type { SourceChange } from '../../recording/mapping/record-mapped.ts';
import { rejectedRowText } from '../../recording/mapping/rejected-row.ts';
import { type MappedChange, type Row, type RowChange, tenantOf } from '../../recording/mapping/row-change.ts';
import { madeBy, whoOf } from '../../recording/mapping/who.ts';
import { faultOfContext, faultOfName } from '../../recording/member-faults.ts';
import { readTransactionInfo, type TransactionInfo } from '../transaction-info.ts';
import type { OutboxRow } from './outbox-rows.ts';
import type { TriggerWatch } from './trigger-watch.ts';

export interface OutboxReader {
  readonly mapping: Mapping;
  readonly watch: Pick<TriggerWatch, 'tables' | 'look' | 'isDue' | 'warnOfLaterColumns'>;
  /** The id of this outbox. */
  readonly outbox: string;
  /** Of the source; empty if it is not known. */
  readonly server: string;
  readonly warn: (message: string) => void;
}

/**
 * The changes of a lane's rows, in order. A delete followed in its transaction by an insert of the same id, as when a
 * row moves between partitions, is one update.
 */
export function changesOfOutbox(rows: readonly OutboxRow[], reader: OutboxReader): SourceChange[] {
  const merged = new Set<number>();
  // A statement of many rows has the same setting in each.
  const warned = new Set<string>();
  const warn = (message: string) => {
    if (!warned.has(message)) reader.warn(message);
    warned.add(message);
  };
  const changesOf = (row: OutboxRow) => changesOfOutboxRow(row, { ...reader, warn });
  return rows.flatMap((row, index) => {
    if (merged.has(index)) return [];
    const next = isDelete(row)
      ? rows.findIndex((later, at) => at > index && later.transaction === row.transaction)
      : -1;
    const inserted = rows[next];
    if (inserted !== undefined && isMove(row, inserted, reader)) {
      merged.add(next);
      const { after, actor, context, who } = inserted;
      return changesOf({ ...row, after, actor, context, who });
    }
    return changesOf(row);
  });
}

/** Whether it may be the first half of a move whose other half is in later rows. */
export function isDelete({ source, before, after }: OutboxRow): boolean {
  return source !== null && before !== null && after === null;
}

function isMove(deleted: OutboxRow, inserted: OutboxRow, { mapping, watch }: OutboxReader): boolean {
  if (inserted.source !== deleted.source || inserted.before !== null || inserted.after === null) return false;
  const source = deleted.source ?? '';
  const ids = mapping.tables.get(source)?.id ?? watch.tables.get(source)?.primaryKey ?? [];
  const before = parseJson(deleted.before ?? '{}');
  const after = parseJson(inserted.after);
  const value = (side: JsonNode, column: string) => {
    const member = memberOf(side, column);
    return member && compactText(member);
  };
  return (
    ids.length > 0 &&
    ids.every((column) => value(before, column) !== undefined && value(before, column) === value(after, column))
  );
}

function changesOfOutboxRow(row: OutboxRow, reader: OutboxReader): SourceChange[] {
  const position = `outbox ${row.number}`;
  const identity = identityOf(`${reader.outbox} ${row.number}`);
  const facts = transactionFacts(row, reader);
  const found = foundWho(row);
  if (row.fault !== null) {
    const content = faultContent(row, position);
    const tenant = tenantOfFault(row, reader.mapping);
    const mapped: MappedChange = { kind: 'rejected', tenant, reason: row.fault, content };
    return [{ mapped, position, content: () => content }];
  }
  if (row.source === null) {
    const change = changeByHand(row, identity, { ...facts, who: facts.who ?? found }, reader.mapping);
    return change.mapped.kind === 'unchanged' ? [] : [{ ...change, position }];
  }
  const later = laterColumns(row);
  if (later.length > 0) reader.watch.warnOfLaterColumns(row.source, later);
  const mapping = withLaterColumns(reader.mapping, row.source, later);
  const mappedTable = mapping.tables.get(row.source);
  const table = reader.watch.tables.get(row.source);
  if (mappedTable === undefined || table === undefined) return [];
  const side = (text: string | null): Row | undefined => {
    if (text === null) return undefined;
    const members = [...membersOf(parseJson(text))];
    return new Map(members.map(([column, value]) => [column, table.value(column, compactText(value))]));
  };
  const change: RowChange = {
    table: row.source,
    type: typeOf(row),
    before: side(row.before),
    after: side(row.after),
    at: row.at,
    identity,
    primaryKey: table.primaryKey,
    ...facts,
  };
  return partOf(row, changesOfRow(mapping, change, { actor: unknownActor }))
    .filter(({ kind }) => kind !== 'unchanged')
    .map((mapped) => ({
      mapped: found === undefined ? mapped : withWho(mapped, found),
      position,
      content: () => rejectedRowText(mappedTable, change),
    }));
}

/** A change that does not say who made it, as made by `who`. */
function withWho(mapped: MappedChange, who: Who): MappedChange {
  if (mapped.kind !== 'change' || mapped.hasActor) return mapped;
  return { ...mapped, change: madeBy(mapped.change, who), hasActor: true };
}

/**
 * A row whose id changed has two outbox rows: its delete in the lane of the old document, its create in that of the new
 * one.
 */
function partOf({ document }: OutboxRow, changes: MappedChange[]): MappedChange[] {
  if (document === null) return changes;
  const part = memberOf(parseJson(document), 'part');
  if (part === undefined) return changes;
  return compactText(part) === '2' ? changes.slice(1) : changes.slice(0, 1);
}

/** The tenant of a change that could not be written; undefined if a column of its row would name it. */
function tenantOfFault({ source, document }: OutboxRow, mapping: Mapping): string | undefined {
  if (source === null) return tenantByHand(parseJson(document ?? '{}'), mapping);
  if (mapping.tenant?.kind === 'value') return mapping.tenant.tenant;
  const table = mapping.tables.get(source);
  return table && mapping.tenant?.kind === 'schema' ? tenantOf(mapping, table, new Map()) : undefined;
}

/** JSON text that identifies a row that could not be written, and so has no values. */
function faultContent({ source, document }: OutboxRow, position: string): string {
  const named = document === null ? undefined : parseJson(document);
  return objectText([
    ['place', JSON.stringify(position)],
    ['table', source === null ? undefined : JSON.stringify(source)],
    ...['entity', 'entityId', 'key'].map((name) => [name, named && memberOf(named, name)] as const),
  ]);
}

/** Who made the transaction, by a new row of another table. */
function foundWho({ transactionActor }: OutboxRow): Who | undefined {
  if (transactionActor === null) return undefined;
  const parts = [...membersOf(parseJson(transactionActor))];
  return whoOf(new Map(parts.map(([part, value]) => [part, compactText(value)])), foundParts);
}

const foundParts: WhoColumns = new Map([
  ['actor', { column: 'actor' }],
  ['actorId', { column: 'actorId' }],
  ['onBehalfOf.name', { column: 'name' }],
  ['onBehalfOf.id', { column: 'id' }],
]);

function typeOf({ before, after }: OutboxRow): ChangeType {
  return before === null ? 'create' : after === null ? 'delete' : 'update';
}

/** What the transaction says of a change. */
type Facts = Pick<RowChange, 'who' | 'correlationId' | 'derivedCorrelationId' | 'context'>;

/**
 * By annals.who, otherwise by annals.actor and annals.context. An annals.who that cannot be read may be of another person
 * than annals.actor, which then does not count.
 */
function transactionFacts(row: OutboxRow, { outbox, server, warn }: OutboxReader): Facts {
  const derivedCorrelationId = row.isOfGroup
    ? derivedUuid(`annals:outbox:${outbox} ${server} ${row.transaction}`)
    : undefined;
  const info = row.who === null ? undefined : readTransactionInfo(row.who);
  if (row.who === null) return { ...ofSingleSettings(row, warn), derivedCorrelationId };
  if (info === undefined) warn('an annals.who of the source cannot be read: its changes are recorded without it');
  return { ...info, derivedCorrelationId };
}

function ofSingleSettings({ actor, context }: OutboxRow, warn: (message: string) => void): TransactionInfo {
  const isActor = actor !== null && faultOfName(actor) === undefined;
  if (actor !== null && !isActor) warn('an annals.actor of the source cannot be read and is ignored');
  const read = context === null ? undefined : readContext(context);
  if (context !== null && read === undefined) warn('an annals.context of the source cannot be read and is ignored');
  return { who: isActor ? { actor } : undefined, context: read };
}

function readContext(text: string): string | undefined {
  const context = parseObject(text);
  return context && faultOfContext(context) === undefined ? compactText(context) : undefined;
}

/** Columns that the trigger masked because they are newer than its SQL. */
function laterColumns({ source, document }: Pick<OutboxRow, 'source' | 'document'>): string[] {
  const masked = source === null || document === null ? undefined : memberOf(parseJson(document), 'masked');
  return masked === undefined ? [] : elementsOf(masked).flatMap((column) => stringOf(column) ?? []);
}

const prepared = new WeakMap<Mapping, Map<string, Mapping>>();

/** The mapping with masks for these columns. Their values are unknown, so nothing else uses them. */
function withLaterColumns(mapping: Mapping, source: string, columns: readonly string[]): Mapping {
  const table = mapping.tables.get(source);
  if (columns.length === 0 || table === undefined) return mapping;
  const byColumns = prepared.getOrInsertComputed(mapping, () => new Map());
  return byColumns.getOrInsertComputed(JSON.stringify([source, columns]), () => ({
    ...mapping,
    tables: new Map([...mapping.tables, [source, maskedTable(table, columns)]]),
  }));
}

function maskedTable(table: TableMapping, columns: readonly string[]): TableMapping {
  const isKnown = (column: string | undefined) => column !== undefined && !columns.includes(column);
  const masks = columns.map((column) => ({ text: column, keys: [column] }));
  const { name, who, correlationId, schemaVersion, related, rules } = table;
  const isOpen = (part: ColumnOrValue | undefined) => part?.value !== undefined || isKnown(part?.column);
  return {
    ...table,
    name: isKnown(name) ? name : undefined,
    who: new Map([...who].filter(([, part]) => isOpen(part))),
    correlationId: isOpen(correlationId) ? correlationId : undefined,
    schemaVersion: isOpen(schemaVersion) ? schemaVersion : undefined,
    related: related.filter(({ id }) => id.every(isKnown)),
    rules: { ...rules, mask: [...rules.mask, ...masks] },
  };
}

/**
 * The change written by `annals.record(…)`. The rules of its entity apply: masks replace the trigger's tokens. If it is
 * rejected, an import line with its valid members is stored.
 */
function changeByHand(
  row: OutboxRow,
  identity: Uint8Array,
  { who, correlationId, derivedCorrelationId, context }: Facts,
  mapping: Mapping,
): Omit<SourceChange, 'position'> {
  const { before, after, at } = row;
  const named = parseJson(row.document ?? '{}');
  const member = (key: string) => stringOf(memberOf(named, key));
  const own = mapping.tenant?.kind === 'value' ? mapping.tenant.tenant : undefined;
  const tenant = tenantByHand(named, mapping);
  const [entity, entityId, name] = [member('entity') ?? '', member('entityId') ?? '', member('name')];
  const type: ChangeType = before === null ? 'create' : after === null ? 'delete' : 'update';
  const shown = maskedSides(row, mapping.entities.get(entity));
  const sides = Object.entries({ before: shown.before, after: shown.after });
  const content = () => objectText(sides);
  const rejected = (reason: string): Omit<SourceChange, 'position'> => {
    const line = objectText([
      ['op', JSON.stringify(operations[type])],
      ['entity', memberOf(named, 'entity')],
      ['entityId', memberOf(named, 'entityId')],
      ['at', JSON.stringify(new Date(at).toISOString())],
      ...sides,
    ]);
    return { mapped: { kind: 'rejected', tenant, reason, content: line }, content };
  };
  if (own !== undefined && tenant !== own) return rejected('its tenant is not that of the mapping');
  if (before === null && after === null) return rejected('it has neither "before" nor "after"');
  for (const [what, value] of Object.entries({ entity, entityId, ...(name === undefined ? {} : { name }) })) {
    const fault = faultOfName(value);
    if (fault !== undefined) return rejected(`"${what}" ${fault}`);
  }
  const difference = differenceOfChange(type, shown.before, shown.after);
  if (difference === undefined) return { mapped: { kind: 'unchanged', tenant }, content };
  const change = { identity, at, type, entity, entityId, actor: unknownActor, related: [], ...contentOf(difference) };
  const labelled: Change = {
    ...(who === undefined ? change : madeBy(change, who)),
    ...(correlationId === undefined ? {} : { correlationId }),
    ...(name === undefined ? {} : { name }),
    ...(context === undefined ? {} : { context }),
  };
  const correlated = withDerivedCorrelation(labelled, derivedCorrelationId);
  return { mapped: { kind: 'change', tenant, change: correlated, hasActor: true }, content };
}

/** The tenant of the change, or of the mapping. */
function tenantByHand(named: JsonNode, { tenant, tenants }: Mapping): string | undefined {
  const name = stringOf(memberOf(named, 'tenant'));
  if (name !== undefined) return tenants.get(name) ?? name;
  return tenant?.kind === 'value' ? tenant.tenant : undefined;
}

function maskedSides({ before, after }: OutboxRow, rules: ValueRules | undefined): Sides {
  const sides = {
    before: before === null ? undefined : parseJson(before),
    after: after === null ? undefined : parseJson(after),
  };
  return rules === undefined ? sides : applyRules(compileRules(rules), sides);
}
