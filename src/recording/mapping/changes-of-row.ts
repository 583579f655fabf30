import { entriesOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { type JsonNode, JsonSyntaxError } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import {
  type Change,
  type ChangeType,
  contentOf,
  differenceOfChange,
  type RelatedItem,
  withDerivedCorrelation,
} from '../change.ts';
import { identityOf } from '../identity.ts';
import { maximumPathsBytes, PathsTooLargeError } from '../path-list.ts';
import type { Difference } from '../paths.ts';
import {
  applyRules,
  applyRulesAt,
  type CompiledRules,
  compileRules,
  type ReusedTape,
  ReusedTapes,
  rowRules,
  type Sides,
} from './apply-rules.ts';
import { type Mapping, maskedColumns, type TableMapping } from './mapping.ts';
import { rejectedRowText } from './rejected-row.ts';
import {
  type ChangedValue,
  documentText,
  hasColumns,
  idOf,
  idTextOf,
  labelOf,
  type MappedChange,
  type MappedDocument,
  mappedContext,
  type Row,
  type RowChange,
  RowRejection,
  relatedOf,
  rowToday,
  tenantOf,
} from './row-change.ts';
import { correlationOf, madeBy, whoOf } from './who.ts';

/** Defaults for a row. */
export interface MappingDefaults {
  /** The actor, if neither the row nor its transaction says who made the change. */
  readonly actor: string;
  /** The tenant, if the source omits its column. Undefined: such a row is rejected. */
  readonly tenant?: string | undefined;
}

/**
 * Maps a row's change: to one change, to a delete and a create if its id or tenant changed, or to none if the mapping
 * does not name the table. The result never contains masked or ignored values.
 *
 * An update without a whole `before` is marked `whole`. One with an incomplete `after` has only the present values.
 *
 * @example
 * changesOfRow(mapping, { table: 'public.orders', type: 'create', after: new Map([['id', '7']]), at: now(), identity }, { actor: 'unknown' });
 */
export function changesOfRow(mapping: Mapping, row: RowChange, defaults: MappingDefaults): MappedChange[] {
  const table = mapping.tables.get(row.table);
  if (table === undefined) return [];
  const today = rowToday(table.former, row);
  const mapper = new RowMapper(mapping, table, today, defaults);
  return mapper.orRejected(today, () => mapper.changes());
}

/** For the delete of a row that moves. */
interface MovedRows extends Pick<RowChange, 'written'> {
  readonly id?: string;
  readonly tenantRow?: Row;
}

/** The actor of changes found by comparing rows with the history. */
const systemActor = 'system';

/** The document of a row, for a snapshot; undefined for an unmapped table. `tenant`: see `MappingDefaults`. */
export function documentOfRow(
  mapping: Mapping,
  row: RowChange & { readonly after: Row },
  tenant?: string,
): MappedDocument | undefined {
  const table = mapping.tables.get(row.table);
  if (table === undefined) return undefined;
  const create: RowChange = { ...row, type: 'create', before: undefined };
  const [mapped] = changesOfRow(mapping, create, { actor: systemActor, tenant });
  if (mapped === undefined || mapped.kind === 'unchanged') return undefined;
  if (mapped.kind === 'rejected') return mapped;
  const { after: current = row.after } = rowToday(table.former, row);
  const { after } = applyRules(rowRules(table).rest, {
    after: parseJson(documentText(current, table, rowRules(table).ignored)),
  });
  const {
    correlationId: _correlationId,
    derived: _derived,
    ...created
  } = madeBy(mapped.change, { actor: systemActor });
  return {
    kind: 'document',
    tenant: mapped.tenant,
    document: after === undefined ? '{}' : compactText(after),
    change: created,
  };
}

/** Tapes for a row's documents and the results of the rules, reused by the next row. */
const tapes = new ReusedTapes();
const tapesOfRules = new ReusedTapes();

class RowMapper {
  readonly #mapping: Mapping;
  readonly #table: TableMapping;
  readonly #row: RowChange;
  readonly #defaults: MappingDefaults;
  /** Set as soon as it is read, so that it is known even if the row is rejected. */
  tenant: string | undefined;

  constructor(mapping: Mapping, table: TableMapping, row: RowChange, defaults: MappingDefaults) {
    this.#mapping = mapping;
    this.#table = table;
    this.#row = row;
    this.#defaults = defaults;
  }

  get #idColumns(): readonly string[] {
    return this.#table.id ?? this.#row.primaryKey ?? [];
  }

  changes(): MappedChange[] {
    if (this.#idColumns.length === 0) {
      throw new RowRejection(
        `no primary key of ${this.#table.table} is known: name the columns of its "id" in the mapping`,
      );
    }
    const [masked] = maskedColumns(this.#table, this.#idColumns);
    if (masked !== undefined) throw new RowRejection(`the mapping masks the column ${masked}, which is of its id`);
    const { type, before, after } = this.#row;
    if (type === 'create') return [this.#change('create', undefined, this.#required(after, 'new'))];
    if (type === 'delete') {
      const { written } = this.#row;
      return [this.#change('delete', this.#required(before, 'old'), undefined, { written })];
    }
    return this.#update(before, this.#required(after, 'new'));
  }

  #update(before: Row | undefined, after: Row): MappedChange[] {
    const full = before === undefined ? after : completed(after, before);
    // The id or the tenant may have changed.
    const isMoved = before !== undefined && (this.#hasOtherId(before, full) || this.#hasOtherTenant(before, full));
    if (isMoved) return this.#move(before, full);
    const isWhole = before === undefined || !this.#isComplete(before, full);
    return [this.#change('update', isWhole ? undefined : before, full)];
  }

  #hasOtherId(before: Row, after: Row): boolean {
    const idIn = (row: Row) => orNothing(() => idTextOf(row, this.#idColumns));
    return hasColumns(before, this.#idColumns) && idIn(before) !== idIn(after);
  }

  #hasOtherTenant(before: Row, after: Row): boolean {
    const { tenant } = this.#mapping;
    if (tenant?.kind !== 'column' || !hasColumns(before, [tenant.column])) return false;
    const tenantIn = (row: Row) => orNothing(() => tenantOf(this.#mapping, this.#table, row, this.#defaults.tenant));
    return tenantIn(before) !== tenantIn(after);
  }

  /** A delete and a create, related if both are of one tenant. If one is invalid, only that is rejected. */
  #move(before: Row, after: Row): MappedChange[] {
    const { entity } = this.#table;
    const row = this.#row;
    const isSameTenant = !this.#hasOtherTenant(before, after);
    const oldRow = hasColumns(before, this.#idColumns) ? before : after;
    // A key without the tenant column implies the same tenant on both sides.
    const tenantRow = isSameTenant ? after : before;
    // The old row says who wrote it, not who moved it. Another tenant must not see the new row.
    const written: Row = isSameTenant ? after : new Map();
    const [deleted] = this.orRejected({ ...row, type: 'delete', before, after: undefined, written }, () => [
      this.#change('delete', before, undefined, { id: idOf(oldRow, this.#idColumns), tenantRow, written }),
    ]);
    const text = `annals:moved:${Buffer.from(row.identity).toString('hex')}`;
    const identity = identityOf(text);
    const [created] = this.orRejected({ ...row, type: 'create', before: undefined, after, identity }, () => [
      this.#change('create', undefined, after),
    ]);
    if (created === undefined || deleted === undefined) return [];
    if (created.kind === 'change') created.change.identity = identity;
    if (created.kind !== 'change' || deleted.kind !== 'change' || !isSameTenant) return [deleted, created];
    return [
      related(deleted, { entity, entityId: created.change.entityId }),
      related(created, { entity, entityId: deleted.change.entityId }),
    ];
  }

  /** The changes of a row, or its rejection. */
  orRejected(row: RowChange, map: () => MappedChange[]): MappedChange[] {
    this.tenant = undefined;
    try {
      return map();
    } catch (error) {
      const content = rejectedRowText(this.#table, row);
      return [{ kind: 'rejected', tenant: this.tenant, reason: reasonOf(error), content }];
    }
  }

  /** Whether `before` has every value of `after`, apart from ignored ones. */
  #isComplete(before: Row, after: Row): boolean {
    if (this.#row.isBeforeWhole === true) return true;
    const { ignored } = rowRules(this.#table);
    for (const [column, value] of after) {
      if (value !== undefined && before.get(column) === undefined && !ignored.has(column)) return false;
    }
    return true;
  }

  #change(
    type: ChangeType,
    before: Row | undefined,
    after: Row | undefined,
    { id, tenantRow, written = after ?? before ?? new Map() }: MovedRows = {},
  ): MappedChange {
    const row = after ?? before ?? new Map();
    const table = this.#table;
    const tenant = tenantOf(this.#mapping, table, tenantRow ?? row, this.#defaults.tenant);
    this.tenant = tenant;
    const entityId = id ?? idOf(row, this.#idColumns);
    const difference = this.#difference(type, before, after);
    if (difference === undefined) return { kind: 'unchanged', tenant };
    const who = this.#row.who ?? whoOf(written, table.who);
    const unnamed: Change = {
      identity: this.#row.identity,
      at: this.#row.at,
      type,
      entity: table.entity,
      entityId,
      actor: this.#defaults.actor,
      related: relatedOf(table, row),
      ...contentOf(difference),
    };
    const change = who === undefined ? unnamed : madeBy(unnamed, who);
    const correlationId = this.#row.correlationId ?? correlationOf(written, table.correlationId);
    if (correlationId !== undefined) change.correlationId = correlationId;
    const name = labelOf(row, table.name);
    if (name !== undefined) change.name = name;
    const version = table.schemaVersion?.value ?? labelOf(row, table.schemaVersion?.column);
    if (version !== undefined) change.schemaVersion = version;
    const context = mappedContext(table, written, this.#row.context);
    if (context !== undefined) change.context = context;
    const correlated = withDerivedCorrelation(change, this.#row.derivedCorrelationId);
    return { kind: 'change', tenant, change: correlated, hasActor: who !== undefined };
  }

  #difference(type: ChangeType, before: Row | undefined, after: Row | undefined): Difference | undefined {
    const { rest, ignored } = rowRules(this.#table);
    if (this.#row.values !== undefined) return differenceOfValues(compileRules(this.#table.rules), this.#row.values);
    const node = (row: Row | undefined, tape: ReusedTape) => row && tape.parse(documentText(row, this.#table, ignored));
    const inputs: Sides = { before: node(before, tapes.before), after: node(after, tapes.after) };
    const sides = applyRules(rest, inputs, tapesOfRules);
    const isPartial = type === 'update' && before === undefined && after !== undefined && lacks(after, ignored);
    if (isPartial && sides.after !== undefined) return partialDifference(sides.after);
    return differenceOfChange(type, sides.before, sides.after);
  }

  #required(row: Row | undefined, which: string): Row {
    if (row !== undefined) return row;
    throw new RowRejection(`the source does not give the ${which} row`);
  }
}

/** `after`, with missing values from `before`. */
function completed(after: Row, before: Row): Row {
  const full = new Map(after);
  for (const [column, value] of after) if (value === undefined) full.set(column, before.get(column));
  return full;
}

/** Whether the source omitted a value that the rules do not ignore. */
function lacks(row: Row, ignored: ReadonlySet<string>): boolean {
  for (const [column, value] of row) if (value === undefined && !ignored.has(column)) return true;
  return false;
}

/** Undefined if the row does not contain it. */
function orNothing<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof RowRejection) return undefined;
    throw error;
  }
}

function related(mapped: Extract<MappedChange, { kind: 'change' }>, item: RelatedItem): MappedChange {
  return { ...mapped, change: { ...mapped.change, related: [item, ...mapped.change.related] } };
}

/** The reason of a rejected row. Rethrows every other error. */
function reasonOf(error: unknown): string {
  if (error instanceof RowRejection || error instanceof PathsTooLargeError) return error.message;
  // A json column may nest deeper than a document.
  if (error instanceof JsonSyntaxError) return `a value cannot be read as JSON: ${error.message}`;
  throw error;
}

/** The difference of an update of which only some new values are known. Each member is one value. */
function partialDifference(after: JsonNode): Difference {
  return differenceOfPaths(entriesOf(after).map(([key, value]) => [pathOf([key]), `{"after":${compactText(value)}}`]));
}

/** The difference of single values, by the rules. Undefined if all are ignored. */
function differenceOfValues(rules: CompiledRules, values: readonly ChangedValue[]): Difference | undefined {
  const paths = values.flatMap(({ keys, after }): [string, string][] => {
    const shown = applyRulesAt(rules, keys, parseJson(after ?? 'null'));
    if (shown === undefined) return [];
    return [[pathOf(keys), after === undefined ? '{}' : `{"after":${shown}}`]];
  });
  return paths.length === 0 ? undefined : differenceOfPaths(paths);
}

function differenceOfPaths(entries: readonly (readonly [path: string, sides: string])[]): Difference {
  const paths = `{${entries.map(([path, sides]) => `${JSON.stringify(path)}:${sides}`).join(',')}}`;
  if (Buffer.byteLength(paths) > maximumPathsBytes) throw new PathsTooLargeError();
  return { paths, marks: entries.some(([path]) => path === '') ? '{"root":true}' : undefined };
}

function pathOf(keys: readonly string[]): string {
  return keys.map((key) => key.replace(/[.\\]/g, '\\$&')).join('.');
}
